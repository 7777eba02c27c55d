-- Adds a replica's ($1) batch ($2) of counts, unless it was added before; counts are so many milliseconds old ($3) by
-- the time the statement arrives. Locks the replica's row first (refusal_flush_pkey), then counts in the order of
-- refusal_count_pkey, so that replicas wait for each other but never in a circle.
with turn as (
    insert into studio.refusal_flush as own (replica, batch)
    values ($1, $2)
    on conflict (replica) do update
    set batch = excluded.batch, flushed_at = clock_timestamp()
    where own.batch < excluded.batch
    returning batch
)
insert into studio.refusal_count as own (minutes, begins_at, limit_name, scope, is_shadow, count)
select
    span.minutes,
    date_bin(
        span.minutes * interval '1 minute',
        statement_timestamp() - counted.age_ms * interval '1 millisecond',
        timestamptz '2000-01-01 00:00:00+00'
    ) as begins_at,
    counted.limit_name,
    counted.scope,
    counted.is_shadow,
    sum(counted.count)
from turn
    cross join unnest($3::int8[], $4::text[], $5::text[], $6::bool[], $7::int8[])
        as counted (age_ms, limit_name, scope, is_shadow, count)
    cross join unnest($8::int4[]) as span (minutes)
group by 1, 2, 3, 4, 5
order by 1, 2, 3, 4, 5
on conflict (minutes, begins_at, limit_name, scope, is_shadow) do update
set count = own.count + excluded.count
