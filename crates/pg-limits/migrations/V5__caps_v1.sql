-- Brings limit_setting.in_force up to date; true when a cap changed.
-- Writes under ACCESS EXCLUSIVE, so that claims by the old cap and by the new one never overlap;
-- takes that lock only when something is to change.
create function limits.refresh_caps_v1() returns boolean
language plpgsql
as $$
declare
    v_stale boolean;
begin
    perform pg_advisory_xact_lock(hashtextextended('limits.caps', 0));
    select exists (
        select
        from limits.limit_setting s
        where s.in_force <> limits.cap_due_v1(s.name, s.cap_set, s.in_force)
    )
    into v_stale;
    if not v_stale then
        return false;
    end if;
    lock table limits.limit_setting in access exclusive mode;
    update limits.limit_setting s
    set in_force = limits.cap_due_v1(s.name, s.cap_set, s.in_force), changed_at = clock_timestamp()
    where s.in_force <> limits.cap_due_v1(s.name, s.cap_set, s.in_force);
    return true;
end
$$;

-- The cap that should be in force: what an operator set, else the smallest that a live replica
-- registered, else what was in force. Uses the primary keys of registration and replica.
create function limits.cap_due_v1(p_name text, p_cap_set int4, p_in_force int4) returns int4
language sql
stable
as $$
    select coalesce(
        p_cap_set,
        (
            select min(g.cap)
            from limits.limit_registration g
            join limits.replica r on r.id = g.replica
            where g.name = p_name
                and r.state <> 'stopped'
                and r.heartbeat_at > clock_timestamp() - interval '15 s'
        ),
        p_in_force
    )
$$;

-- Sets a cap for the whole installation, or (null) returns it to what the replicas registered.
-- One row by primary key; in force for every claim that begins after the call returns.
create function limits.set_cap_v1(p_name text, p_cap int4) returns void
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('limits.caps', 0));
    lock table limits.limit_setting in access exclusive mode;
    insert into limits.limit_setting as s (name, cap_set, in_force)
    values (p_name, p_cap, coalesce(p_cap, 0))
    on conflict (name) do update
    set cap_set = p_cap, changed_at = clock_timestamp();
    perform limits.refresh_caps_v1();
end
$$;
