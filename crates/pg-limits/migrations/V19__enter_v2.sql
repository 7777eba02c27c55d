-- Lets requests of several in-flight keys in by one call: all that are wanted, or none of them, so that
-- what a call costs is shared by whoever waits. Where something does not fit it gives null, nothing is
-- written, and each key has its own call of enter_v1, which tells how many fit and what refused the rest.
--
-- Calls for one in-flight key exclude each other by its advisory lock until they commit, as those of
-- enter_v1 do. In-flight keys, and windows, are locked by primary key in the order given, which must be
-- the same for all callers (sort by name, key); each key and each window is given once.
--
-- p_names .. p_ends_ms    the in-flight keys, as enter_v1 has them
-- p_windows .. p_counts   the windows, and how many things are counted in each
--
-- Gives how many of each in-flight key were under way on all replicas before, then of the windows all
-- counts, how many milliseconds until each ends, and their ends in microseconds since 1970.
create function limits.enter_v2(
    p_replica uuid,
    p_call int8,
    p_names text[],
    p_keys text[],
    p_limits int4[],
    p_held int4[],
    p_wanted int4[],
    p_ends_ms int8[],
    p_windows text[],
    p_window_keys text[],
    p_window_limits int4[],
    p_window_ms int8[],
    p_counts int4[]
) returns int8[]
language plpgsql
as $$
declare
    v_lock text;
    v_counted int8[] := '{}';
    v_before int8[] := '{}';
begin
    for i in 1 .. cardinality(p_keys) loop
        v_lock := pg_advisory_xact_lock(hashtextextended(p_keys[i], hashtext('limits.' || p_names[i])));
    end loop;

    if cardinality(p_windows) > 0 then
        with counted as (
            -- `added` carries the limit to the condition below, which sees nothing but columns.
            insert into limits.window_count as w (name, key, added, lapses_at, count)
            select a.name, a.key, a.at_most, clock_timestamp() + a.ms * interval '1 ms', a.n
            from unnest(p_windows, p_window_keys, p_window_limits, p_window_ms, p_counts)
                as a (name, key, at_most, ms, n)
            where a.n <= a.at_most
            on conflict (name, key) do update
            set lapses_at = case when w.lapses_at > clock_timestamp() then w.lapses_at else excluded.lapses_at end,
                count = case when w.lapses_at > clock_timestamp() then w.count else 0 end + excluded.count
            where w.count <= excluded.added - excluded.count or w.lapses_at <= clock_timestamp()
            returning w.name, w.key, w.count, w.lapses_at
        )
        select array_agg(c.count::int8)
            || array_agg(ceil(date_part('epoch', c.lapses_at - clock_timestamp()) * 1000)::int8)
            || array_agg(round(date_part('epoch', c.lapses_at) * 1000000)::int8)
        into v_counted
        from (select * from counted order by name, key) c;
    end if;

    if cardinality(p_keys) > 0 and cardinality(v_counted) = 3 * cardinality(p_windows) then
        -- A snapshot of its own, taken with the locks held: it shows every call that came before.
        with asked as (
            select a.*, a.held + coalesce((
                select sum(f.held)
                from limits.in_flight f
                where f.name = a.name
                    and f.key = a.key
                    and f.replica <> p_replica
                    and f.lapses_at > clock_timestamp()
            ), 0) as before
            from unnest(p_names, p_keys, p_limits, p_held, p_wanted, p_ends_ms)
                with ordinality as a (name, key, at_most, held, wanted, ms, place)
        ),
        told as (
            insert into limits.in_flight as f (name, key, replica, lapses_at, held, call)
            select a.name, a.key, p_replica, clock_timestamp() + a.ms * interval '1 ms', a.held + a.wanted, p_call
            from asked a
            where not exists (select from asked a where a.wanted > 0 and a.before + a.wanted > a.at_most)
            on conflict (name, key, replica) do update
            set lapses_at = excluded.lapses_at, held = excluded.held, call = excluded.call
            where f.call < excluded.call
        )
        select array_agg(a.before order by a.place)
        into v_before
        from asked a
        having not bool_or(a.wanted > 0 and a.before + a.wanted > a.at_most);
    end if;

    if cardinality(v_before) = cardinality(p_keys) and cardinality(v_counted) = 3 * cardinality(p_windows) then
        return v_before || v_counted;
    end if;

    -- What this transaction wrote is locked by it: nobody has seen what is taken back.
    update limits.window_count w
    set count = w.count - a.n
    from unnest(p_windows, p_window_keys, p_counts) as a (name, key, n)
    where w.name = a.name and w.key = a.key and w.xmin = pg_current_xact_id()::xid;
    return null;
end
$$;
