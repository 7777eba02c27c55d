-- Counted windows: a row a key, which begins with its first count and ends a length later.
-- HOT: no index holds what a count changes, and half of each page is free for new versions.
insert into limits.unlogged_table (name, definition, is_swept)
values (
    'window_count',
    $definition$
    create unlogged table limits.window_count (
        name text collate "C" not null,
        key text collate "C" not null,
        -- What the last call added: an update cannot return the value that it replaced.
        -- First of the three, because PostgreSQL computes them in this order: see count_v1.
        added int4 not null,
        lapses_at timestamptz not null,
        count int4 not null,
        primary key (name, key)
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

-- Counts p_count things in a window, as many of them as fit: by primary key, one row lock.
-- Gives {added, count, resets_ms, ends_us}: how many of them were counted (0: the window is full, and
-- nothing was written), what the window now holds, how long until it ends and a new one can begin, and
-- its end in microseconds since 1970, which tells it from every other window of its key.
create function limits.count_v1(
    p_name text,
    p_key text,
    p_limit int4,
    p_length_ms int8,
    p_count int4
) returns int8[]
language plpgsql
as $$
declare
    v_answer int8[];
begin
    loop
        -- The clock is read when the row is ours, each time anew: a window that ended while we waited is
        -- over. Should it end between two of these lines, what was added still fitted the old window.
        update limits.window_count w
        set added = case when w.lapses_at > clock_timestamp() then least(p_count, p_limit - w.count) else least(p_count, p_limit) end,
            lapses_at = case when w.lapses_at > clock_timestamp() then w.lapses_at else clock_timestamp() + p_length_ms * interval '1 ms' end,
            count = case when w.lapses_at > clock_timestamp() then w.count + least(p_count, p_limit - w.count) else least(p_count, p_limit) end
        where w.name = p_name
            and w.key = p_key
            and p_limit > 0
            and (w.count < p_limit or w.lapses_at <= clock_timestamp())
        returning array[
            w.added,
            w.count,
            ceil(date_part('epoch', w.lapses_at - clock_timestamp()) * 1000),
            round(date_part('epoch', w.lapses_at) * 1000000)
        ]::int8[]
        into v_answer;
        if found then
            return v_answer;
        end if;

        select array[
            0,
            w.count,
            ceil(date_part('epoch', w.lapses_at - clock_timestamp()) * 1000),
            round(date_part('epoch', w.lapses_at) * 1000000)
        ]::int8[]
        into v_answer
        from limits.window_count w
        where w.name = p_name and w.key = p_key and w.count >= p_limit and w.lapses_at > clock_timestamp();
        if found then
            return v_answer;
        end if;
        if p_limit <= 0 then
            return array[0, 0, p_length_ms, 0]::int8[];
        end if;

        insert into limits.window_count as w (name, key, lapses_at, count, added)
        values (
            p_name,
            p_key,
            clock_timestamp() + p_length_ms * interval '1 ms',
            least(p_count, p_limit),
            least(p_count, p_limit)
        )
        on conflict do nothing
        returning array[w.added, w.count, p_length_ms, round(date_part('epoch', w.lapses_at) * 1000000)]::int8[]
        into v_answer;
        if found then
            return v_answer;
        end if;
    end loop;
end
$$;

-- Takes back what was counted in a window that has not ended since; false when it has.
-- By primary key; the window's end, as count_v1 gave it, tells it from its successors.
create function limits.uncount_v1(p_name text, p_key text, p_count int4, p_ends_us int8) returns boolean
language plpgsql
as $$
begin
    update limits.window_count w
    set count = greatest(w.count - p_count, 0)
    where w.name = p_name
        and w.key = p_key
        and w.lapses_at > clock_timestamp()
        and round(date_part('epoch', w.lapses_at) * 1000000)::int8 = p_ends_us;
    return found;
end
$$;
