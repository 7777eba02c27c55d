-- Registers a replica and the caps it was built with. Primary keys only.
create function limits.register_v1(
    p_replica uuid,
    p_name text,
    p_version text,
    p_state text,
    p_limits text[],
    p_caps int4[]
) returns void
language plpgsql
as $$
begin
    insert into limits.replica as r (id, name, version, state)
    values (p_replica, p_name, p_version, p_state)
    on conflict (id) do update
    set name = p_name, version = p_version, state = p_state, heartbeat_at = clock_timestamp();
    insert into limits.limit_registration as g (replica, name, cap)
    select p_replica, l.name, l.cap
    from unnest(p_limits, p_caps) l (name, cap)
    on conflict (replica, name) do update
    set cap = excluded.cap;
    -- A limit seen for the first time begins at the cap that this replica registers.
    insert into limits.limit_setting (name, in_force)
    select l.name, l.cap
    from unnest(p_limits, p_caps) l (name, cap)
    order by l.name
    on conflict do nothing;
    perform limits.refresh_caps_v1();
end
$$;

-- Says that a replica lives, in the database's time; false when it must register anew.
-- One row by primary key; then the caps of replicas that have gone stop counting.
create function limits.heartbeat_v1(p_replica uuid, p_state text) returns boolean
language plpgsql
as $$
begin
    update limits.replica r
    set heartbeat_at = clock_timestamp(), state = p_state
    where r.id = p_replica;
    if not found then
        return false;
    end if;
    perform limits.refresh_caps_v1();
    return true;
end
$$;

-- Replicas with the state that their heartbeat proves: 'gone' after 15 s of silence.
-- Reads the whole table: a row a replica.
create view limits.live_replica as
    select
        id,
        name,
        version,
        case
            when state <> 'stopped' and heartbeat_at <= clock_timestamp() - interval '15 s' then 'gone'
            else state
        end as state,
        started_at,
        heartbeat_at
    from limits.replica;
