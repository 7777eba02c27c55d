-- Counts in many windows in one round trip: in each of them all that is asked, or nothing, and only
-- what was counted comes back, in the order given. By primary key, a row lock each, in that order, which
-- must be the same for all callers (sort by name, key); each window is given once. A statement, no
-- function: it is most of what a count costs. What does not fit has its own call of count_v1.
insert into limits.window_count as w (name, key, added, lapses_at, count)
-- `added` carries the limit to the condition below, which sees nothing but columns.
select a.name, a.key, a.at_most, clock_timestamp() + a.ms * interval '1 ms', a.n
from unnest($1, $2, $3, $4, $5) as a (name, key, at_most, ms, n)
where a.n <= a.at_most
on conflict (name, key) do update
set lapses_at = case when w.lapses_at > clock_timestamp() then w.lapses_at else excluded.lapses_at end,
    count = case when w.lapses_at > clock_timestamp() then w.count else 0 end + excluded.count
where w.count <= excluded.added - excluded.count or w.lapses_at <= clock_timestamp()
returning w.name, w.key, w.count, w.lapses_at, clock_timestamp()
