-- The tables that a crash empties, each with the statements that make it: repair_v1 makes what is
-- missing, grant_v1 grants it, sweep_v1 removes what has lapsed from it. One row a table.
create table limits.unlogged_table (
    name text primary key,
    definition text not null,
    views text[] not null default '{}',
    is_swept boolean not null
);
comment on table limits.unlogged_table is
    'is_swept: the table has a column lapses_at, and a row whose time has come means nothing any more.';

insert into limits.unlogged_table (name, definition, views, is_swept)
values (
    'heavy_permit',
    $definition$
    -- A slot row stays for ever and is released by an update of columns that no index holds (HOT).
    -- Half of each page is left free for the versions of its own rows.
    create unlogged table limits.heavy_permit (
        scope text not null,
        slot int4 not null,
        permit uuid,
        endpoint text,
        user_id text,
        replica uuid,
        granted_at timestamptz,
        bound_ends_at timestamptz,
        ends_at timestamptz not null default '-infinity',
        primary key (scope, slot)
    ) with (
        fillfactor = 50,
        autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0
    );
    create view limits.live_permit as
        select scope, slot, permit, endpoint, user_id, replica, granted_at, bound_ends_at, ends_at
        from limits.heavy_permit
        where ends_at > clock_timestamp();
    $definition$,
    '{live_permit}',
    false
);

-- Makes each table of limits.unlogged_table that is missing or whose file was lost, and says whether
-- it did. An advisory lock lets one session repair at a time; the others find the work done.
create or replace function limits.repair_v1() returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_table record;
    v_role text;
    v_relation text;
    v_repaired boolean := false;
begin
    perform pg_advisory_xact_lock(hashtextextended('limits.repair', 0));
    for v_table in select t.name, t.definition, t.views from limits.unlogged_table t order by t.name loop
        if to_regclass(format('limits.%I', v_table.name)) is not null then
            begin
                execute format('select from limits.%I limit 1', v_table.name);
                continue;
            exception when undefined_file then
                execute format('drop table limits.%I cascade', v_table.name);
            end;
        end if;
        execute v_table.definition;
        for v_role in select g.role from limits.grantee g loop
            execute format('grant select, insert, update, delete on limits.%I to %I', v_table.name, v_role);
            foreach v_relation in array v_table.views loop
                execute format('grant select on limits.%I to %I', v_relation, v_role);
            end loop;
        end loop;
        v_repaired := true;
    end loop;
    return v_repaired;
end
$$;

-- Lets a role use the limits, and nothing else. By name in each catalogue.
create or replace function limits.grant_v1(p_role text) returns void
language plpgsql
as $$
declare
    v_table record;
    v_view text;
begin
    insert into limits.grantee (role) values (p_role) on conflict do nothing;
    execute format('grant usage on schema limits to %I', p_role);
    -- LOCK TABLE .. IN ACCESS EXCLUSIVE MODE is what refresh_caps_v1 needs, and DELETE allows it.
    execute format(
        'grant select, insert, update, delete on limits.limit_setting, limits.replica, limits.limit_registration to %I',
        p_role
    );
    execute format('grant select on limits.live_replica, limits.unlogged_table to %I', p_role);
    for v_table in select t.name, t.views from limits.unlogged_table t loop
        execute format('grant select, insert, update, delete on limits.%I to %I', v_table.name, p_role);
        foreach v_view in array v_table.views loop
            execute format('grant select on limits.%I to %I', v_view, p_role);
        end loop;
    end loop;
    execute format('grant execute on all functions in schema limits to %I', p_role);
    execute format('revoke execute on function limits.grant_v1(text) from %I', p_role);
end
$$;

-- Housekeeping: removes at most p_batch rows that nobody will come back to, and returns how many;
-- -1 when another replica is sweeping. One sweep at a time by an advisory lock; a row that somebody
-- holds is skipped, so a sweep never makes a call wait. Scans each table until its batch is full.
create or replace function limits.sweep_v1(p_batch int4) returns int4
language plpgsql
as $$
declare
    v_table text;
    v_removed int4;
    v_total int4;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('limits.sweep', 0)) then
        return -1;
    end if;
    -- Slots above the cap in force, left over from a higher one.
    delete from limits.heavy_permit p
    using (
        select f.scope, f.slot
        from limits.heavy_permit f
        where f.scope = 'installation'
            and f.slot >= (select s.in_force from limits.limit_setting s where s.name = 'installation')
            and f.ends_at <= clock_timestamp()
        limit p_batch
        for update skip locked
    ) left_over
    where p.scope = left_over.scope and p.slot = left_over.slot;
    get diagnostics v_total = row_count;
    delete from limits.replica r
    using (
        select g.id
        from limits.replica g
        where g.heartbeat_at < clock_timestamp() - interval '1 day'
        limit greatest(p_batch - v_total, 0)
        for update skip locked
    ) gone
    where r.id = gone.id;
    get diagnostics v_removed = row_count;
    v_total := v_total + v_removed;
    for v_table in select t.name from limits.unlogged_table t where t.is_swept order by t.name loop
        -- A row that was locked here is still the same version when it is deleted.
        execute format(
            'delete from limits.%1$I t
            using (
                select l.ctid
                from limits.%1$I l
                where l.lapses_at <= clock_timestamp()
                limit $1
                for update skip locked
            ) lapsed
            where t.ctid = lapsed.ctid',
            v_table
        ) using greatest(p_batch - v_total, 0);
        get diagnostics v_removed = row_count;
        v_total := v_total + v_removed;
    end loop;
    return v_total;
end
$$;
