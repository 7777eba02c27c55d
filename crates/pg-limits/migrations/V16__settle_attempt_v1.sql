-- Counts a failed attempt in the row of each key, and blocks what has reached its limit; returns in how many.
-- Rows are found by primary key and locked in the order of (name, key); the ends are computed under the lock.
--
-- A failure counts once: by its reservation, which it removes. Where the row itself is gone it counts too, and so
-- it does when p_is_late says that the attempt is older than any reservation is kept.
create function limits.fail_attempt_v1(
    p_attempt uuid,
    p_names text[],
    p_keys text[],
    p_failures int4[],
    p_within_ms int8[],
    p_first_wait_ms int8[],
    p_longest_wait_ms int8[],
    p_forgotten_ms int8[],
    p_is_late boolean
) returns int4
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    v_key record;
    v_row record;
    v_is_new boolean;
    v_now timestamptz;
    v_counted int4 := 0;
begin
    for v_key in
        select a.*
        from unnest(p_names, p_keys, p_failures, p_within_ms, p_first_wait_ms, p_longest_wait_ms, p_forgotten_ms)
            a (name, key, failures, within_ms, first_wait_ms, longest_wait_ms, forgotten_ms)
        order by a.name, a.key
    loop
        v_is_new := false;
        loop
            select * into v_row from limits.throttle t where t.name = v_key.name and t.key = v_key.key for update;
            exit when found;
            insert into limits.throttle as t (name, key, lapses_at)
            values (v_key.name, v_key.key, clock_timestamp())
            on conflict do nothing;
            v_is_new := found;
        end loop;
        continue when not (v_is_new or p_is_late or p_attempt = any (v_row.reservations));

        v_now := clock_timestamp();
        if v_row.window_ends_at <= v_now then
            v_row.failures := 0;
            v_row.window_ends_at := v_now + v_key.within_ms * interval '1 ms';
        end if;
        v_row.failures := v_row.failures + 1;
        if v_row.forgotten_at <= v_now then
            v_row.level := 0;
        end if;
        if v_row.failures >= v_key.failures then
            v_row.level := v_row.level + 1;
            v_row.blocked_until := greatest(
                v_row.blocked_until,
                v_now + interval '1 ms' * least(
                    v_key.first_wait_ms * 2::float8 ^ least(v_row.level - 1, 40),
                    v_key.longest_wait_ms
                )
            );
        end if;
        v_row.lapses_at := greatest(v_row.lapses_at, v_row.window_ends_at, v_row.blocked_until);
        if v_row.level > 0 then
            v_row.forgotten_at := v_now + v_key.forgotten_ms * interval '1 ms';
            v_row.lapses_at := greatest(v_row.lapses_at, v_row.forgotten_at);
        end if;
        update limits.throttle t
        set failures = v_row.failures,
            window_ends_at = v_row.window_ends_at,
            level = v_row.level,
            blocked_until = v_row.blocked_until,
            forgotten_at = v_row.forgotten_at,
            (reservations, reservation_ends) = (
                select coalesce(array_agg(r.id order by r.n), '{}'), coalesce(array_agg(r.ends_at order by r.n), '{}')
                from unnest(t.reservations, t.reservation_ends) with ordinality r (id, ends_at, n)
                where r.id <> p_attempt
            ),
            lapses_at = v_row.lapses_at
        where t.name = v_key.name and t.key = v_key.key;
        v_counted := v_counted + 1;
    end loop;
    return v_counted;
end
$$;

-- Ends an attempt that did not fail: removes its reservations, and where p_clears says so (it succeeded) also the
-- failures and the block of the row; returns from how many rows. Others' reservations stay. By primary key, and one
-- row after the other in the order of (name, key); a reservation that is not there changes nothing.
create function limits.end_attempt_v1(
    p_attempt uuid,
    p_names text[],
    p_keys text[],
    p_clears boolean[]
) returns int4
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    v_key record;
    v_ended int4 := 0;
begin
    for v_key in
        select a.*
        from unnest(p_names, p_keys, p_clears) a (name, key, clears)
        order by a.name, a.key
    loop
        update limits.throttle t
        set (reservations, reservation_ends) = (
                select coalesce(array_agg(r.id order by r.n), '{}'), coalesce(array_agg(r.ends_at order by r.n), '{}')
                from unnest(t.reservations, t.reservation_ends) with ordinality r (id, ends_at, n)
                where r.id <> p_attempt
            ),
            failures = case when v_key.clears then 0 else t.failures end,
            window_ends_at = case when v_key.clears then '-infinity' else t.window_ends_at end,
            level = case when v_key.clears then 0 else t.level end,
            blocked_until = case when v_key.clears then '-infinity' else t.blocked_until end,
            forgotten_at = case when v_key.clears then '-infinity' else t.forgotten_at end,
            -- Cleared it is kept as long as others may be settled by it.
            lapses_at = case
                when not v_key.clears then t.lapses_at
                when cardinality(t.reservations) = 1 then clock_timestamp()
                else (select max(r.ends_at) from unnest(t.reservation_ends) r (ends_at)) + interval '1 min'
            end
        where t.name = v_key.name and t.key = v_key.key and p_attempt = any (t.reservations);
        if found then
            v_ended := v_ended + 1;
        end if;
    end loop;
    return v_ended;
end
$$;
