-- Refusals of 23 kinds in every bucket of every length: hours of minutes, and a month of the longer ones.
insert into studio.refusal_count (minutes, begins_at, limit_name, scope, is_shadow, count)
select span.minutes, bucket, 'limit ' || kind / 2, 'user', kind % 2 = 1, 1
from unnest(array[1, 10, 60, 360, 1440]) as span (minutes)
    cross join lateral generate_series(
        date_bin(
            span.minutes * interval '1 minute',
            now() - case when span.minutes = 1 then interval '2 hours' when span.minutes = 10 then interval '1 day' else interval '31 days 6 hours' end,
            timestamptz '2000-01-01 00:00:00+00'
        ),
        now(),
        span.minutes * interval '1 minute'
    ) as bucket
    cross join generate_series(0, 22) as kind
