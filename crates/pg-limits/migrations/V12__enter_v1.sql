-- What is in flight: a row a key and replica, with how many that replica has under way. Each call says
-- the replica's own number anew, so that a lost call, or a lost table, is made good by the next one.
insert into limits.unlogged_table (name, definition, is_swept)
values (
    'in_flight',
    $definition$
    create unlogged table limits.in_flight (
        name text collate "C" not null,
        key text collate "C" not null,
        replica uuid not null,
        lapses_at timestamptz not null,
        held int4 not null,
        -- The number of the replica's call: one that comes late must not undo a later one.
        call int8 not null,
        primary key (name, key, replica)
    ) with (
        fillfactor = 50,
        autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0
    );
    $definition$,
    true
);

select limits.repair_v1();

-- Lets requests in, as many of p_wanted as the in-flight cap and every window allow, all in one call.
-- Calls for one in-flight key exclude each other by an advisory lock until they commit; windows are
-- locked by primary key in the order given, which must be the same for all callers (sort by name, key).
--
-- p_in_flight  null: windows only
-- p_held       how many of this key the replica has under way; with p_wanted 0 this is a release
-- p_ends_ms    until the last of them ends, those wanted included: the row lapses then
--
-- Gives {admitted, refused_by, in_flight}, then {count, resets_ms, ends_us} of each window up to a full
-- one, as count_v1 gives them: the first so many of those wanted are in, and counted, and what is refused
-- counts nowhere; refused_by is the first limit that let fewer in (0 the in-flight cap, n the n-th window,
-- -1 none); in_flight is how many of this key were under way on all replicas before.
create function limits.enter_v1(
    p_replica uuid,
    p_in_flight text,
    p_key text,
    p_limit int4,
    p_call int8,
    p_held int4,
    p_ends_ms int8,
    p_wanted int4,
    p_windows text[],
    p_window_keys text[],
    p_window_limits int4[],
    p_window_ms int8[]
) returns int8[]
language plpgsql
as $$
declare
    v_admitted int4 := p_wanted;
    v_refused_by int4 := -1;
    v_in_flight int4 := 0;
    v_counted int8[];
    v_windows int8[] := '{}';
begin
    if p_in_flight is not null then
        perform pg_advisory_xact_lock(hashtextextended(p_key, hashtext('limits.' || p_in_flight)));
        if p_wanted > 0 then
            -- A snapshot of its own, taken with the lock held: it shows every call that came before.
            select p_held + coalesce(sum(f.held), 0)
            into v_in_flight
            from limits.in_flight f
            where f.name = p_in_flight
                and f.key = p_key
                and f.replica <> p_replica
                and f.lapses_at > clock_timestamp();
            if v_in_flight + p_wanted > p_limit then
                v_admitted := greatest(p_limit - v_in_flight, 0);
                v_refused_by := 0;
            end if;
        end if;
    end if;

    if v_admitted > 0 then
        for i in 1 .. cardinality(p_windows) loop
            v_counted := limits.count_v1(
                p_windows[i], p_window_keys[i], p_window_limits[i], p_window_ms[i], v_admitted
            );
            if v_counted[1] < v_admitted then
                -- Their rows are locked by us: nobody has seen what is taken back.
                for j in 1 .. i - 1 loop
                    v_windows[3 * j - 2] := v_windows[3 * j - 2] - (v_admitted - v_counted[1]);
                    update limits.window_count w
                    set count = v_windows[3 * j - 2]
                    where w.name = p_windows[j] and w.key = p_window_keys[j];
                end loop;
                v_admitted := v_counted[1];
                v_refused_by := i;
            end if;
            v_windows := v_windows || v_counted[2:4];
            exit when v_admitted = 0;
        end loop;
    end if;

    if p_in_flight is not null then
        update limits.in_flight f
        set held = p_held + v_admitted,
            call = p_call,
            lapses_at = clock_timestamp() + p_ends_ms * interval '1 ms'
        where f.name = p_in_flight
            and f.key = p_key
            and f.replica = p_replica
            and f.call < p_call
            -- What was refused writes nothing.
            and (v_admitted > 0 or f.held <> p_held);
        if not found and p_held + v_admitted > 0 then
            insert into limits.in_flight (name, key, replica, lapses_at, held, call)
            values (
                p_in_flight,
                p_key,
                p_replica,
                clock_timestamp() + p_ends_ms * interval '1 ms',
                p_held + v_admitted,
                p_call
            )
            on conflict do nothing;
        end if;
    end if;
    return array[v_admitted, v_refused_by, v_in_flight]::int8[] || v_windows;
end
$$;
