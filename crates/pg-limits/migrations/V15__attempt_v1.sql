-- Admits one attempt under several throttles, all or nothing, by a reservation in the row of each key.
-- A refusal is decided by a plain read of the rows and writes nothing; an admission locks them in the order of
-- (name, key) and reads again. Relies on the primary key of limits.throttle. See docs/adr/0011.
--
-- A row's failures count until window_ends_at; what is free is the limit less failures and live reservations, and
-- at least one, so that after a block that ended within the window attempts go one by one.
--
-- outcome      'admitted', 'throttled' (a row is blocked) or 'full' (only reservations fill a row: ask again)
-- place        of 'throttled' and 'full': which of the keys, counted from 1
-- retry_ms     of 'throttled': until that row's block ends, the longest of all
-- reserved     of 'admitted': in which rows it has its reservation; not in those blocked in shadow
-- shadow_place, shadow_retry_ms  of 'admitted': the row that would have refused, were it not in shadow
create function limits.attempt_v1(
    p_attempt uuid,
    p_names text[],
    p_keys text[],
    p_failures int4[],
    p_is_shadow boolean[],
    p_lapse_ms int8,
    out outcome text,
    out place int4,
    out retry_ms int8,
    out reserved boolean[],
    out shadow_place int4,
    out shadow_retry_ms int8
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    v_row record;
    v_now timestamptz;
    v_wait_ms int8;
    v_full int4;
    v_has_locks boolean := false;
    v_lapse interval := p_lapse_ms * interval '1 ms';
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'limits.attempt_v1 counts in fresh snapshots: call it in READ COMMITTED'
            using errcode = 'invalid_transaction_state';
    end if;
    reserved := array_fill(true, array[cardinality(p_names)]);
    loop
        v_now := clock_timestamp();
        shadow_place := null;
        shadow_retry_ms := null;
        for v_row in
            select
                a.place::int4 as place,
                a.is_shadow,
                ceil(extract(epoch from greatest(t.blocked_until, v_now) - v_now) * 1000)::int8 as wait_ms,
                t.blocked_until > v_now as is_blocked,
                greatest(1, a.failures - case when t.window_ends_at > v_now then t.failures else 0 end) as free,
                (select count(*) from unnest(t.reservation_ends) r (ends_at) where r.ends_at > v_now) as live
            from unnest(p_names, p_keys, p_failures, p_is_shadow)
                with ordinality a (name, key, failures, is_shadow, place)
            join limits.throttle t on t.name = a.name and t.key = a.key
            order by a.name, a.key
        loop
            if v_row.is_blocked and v_row.is_shadow then
                -- Were it not in shadow the attempt would not come about: it does not count here.
                reserved[v_row.place] := false;
                if shadow_retry_ms is null or v_row.wait_ms > shadow_retry_ms then
                    shadow_place := v_row.place;
                    shadow_retry_ms := v_row.wait_ms;
                end if;
            elsif v_row.is_blocked and (retry_ms is null or v_row.wait_ms > retry_ms) then
                place := v_row.place;
                retry_ms := v_row.wait_ms;
            elsif v_full is null and not v_row.is_shadow and v_row.live >= v_row.free then
                v_full := v_row.place;
            end if;
        end loop;
        if retry_ms is not null then
            outcome := 'throttled';
            return;
        end if;
        if v_full is not null then
            outcome := 'full';
            place := v_full;
            return;
        end if;
        exit when v_has_locks;

        for v_row in
            select a.name, a.key
            from unnest(p_names, p_keys, reserved) a (name, key, is_reserved)
            where a.is_reserved
            order by a.name, a.key
        loop
            loop
                perform from limits.throttle t where t.name = v_row.name and t.key = v_row.key for update;
                exit when found;
                insert into limits.throttle as t (name, key, lapses_at)
                values (v_row.name, v_row.key, clock_timestamp() + 4 * v_lapse)
                on conflict do nothing;
                exit when found;
            end loop;
        end loop;
        v_has_locks := true;
    end loop;

    -- Every row is ours: nothing waits here, so the ends are computed where they are written. A reservation that
    -- has lapsed is kept three times as long again: it no longer counts, but its settlement is known by it.
    update limits.throttle t
    set (reservations, reservation_ends) = (
            select
                coalesce(array_agg(r.id order by r.n), '{}') || p_attempt,
                coalesce(array_agg(r.ends_at order by r.n), '{}') || (clock_timestamp() + v_lapse)
            from unnest(t.reservations, t.reservation_ends) with ordinality r (id, ends_at, n)
            where r.ends_at > v_now - 3 * v_lapse and r.id <> p_attempt
        ),
        lapses_at = greatest(t.lapses_at, clock_timestamp() + 4 * v_lapse)
    from unnest(p_names, p_keys, reserved) a (name, key, is_reserved)
    where a.is_reserved and t.name = a.name and t.key = a.key;
    outcome := 'admitted';
end
$$;
