-- Makes limits.heavy_permit where it is missing or its file was lost, and says whether it did.
-- An advisory lock lets one session repair at a time; the others find the work done.
create function limits.repair_v1() returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_role text;
begin
    perform pg_advisory_xact_lock(hashtextextended('limits.repair', 0));
    if to_regclass('limits.heavy_permit') is not null then
        begin
            perform 1 from limits.heavy_permit limit 1;
            return false;
        exception when undefined_file then
            drop table limits.heavy_permit cascade;
        end;
    end if;
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
    for v_role in select g.role from limits.grantee g loop
        execute format('grant select, insert, update, delete on limits.heavy_permit to %I', v_role);
        execute format('grant select on limits.live_permit to %I', v_role);
    end loop;
    return true;
end
$$;

revoke all on function limits.repair_v1() from public;

select limits.repair_v1();
