-- Counts in one window in one round trip: all that is asked, or nothing, and then no row comes back. By
-- primary key, one row lock. A statement, no function, and apart from count_together: both are most of
-- what a count costs. What is asked is not above the limit, which the caller has seen to: `values` costs
-- less than a `select` with a condition. What does not fit has its own call of count_v1.
-- $1 name, $2 key, $3 limit, $4 length in milliseconds, $5 how many
insert into limits.window_count as w (name, key, added, lapses_at, count)
values ($1, $2, $5, clock_timestamp() + $4 * interval '1 ms', $5)
on conflict (name, key) do update
set lapses_at = case when w.lapses_at > clock_timestamp() then w.lapses_at else excluded.lapses_at end,
    count = case when w.lapses_at > clock_timestamp() then w.count else 0 end + excluded.count
where w.count <= $3 - $5 or w.lapses_at <= clock_timestamp()
returning w.count, w.lapses_at, clock_timestamp()
