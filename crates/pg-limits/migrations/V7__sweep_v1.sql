-- Housekeeping: removes at most p_batch rows that nobody will come back to, and returns how many;
-- -1 when another replica is sweeping. One sweep at a time by an advisory lock; a slot row that a
-- claim holds is skipped, so a sweep never makes a claim wait or refuse.
create function limits.sweep_v1(p_batch int4) returns int4
language plpgsql
as $$
declare
    v_slots int4;
    v_replicas int4;
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
    get diagnostics v_slots = row_count;
    delete from limits.replica r
    using (
        select g.id
        from limits.replica g
        where g.heartbeat_at < clock_timestamp() - interval '1 day'
        limit greatest(p_batch - v_slots, 0)
        for update skip locked
    ) gone
    where r.id = gone.id;
    get diagnostics v_replicas = row_count;
    return v_slots + v_replicas;
end
$$;
