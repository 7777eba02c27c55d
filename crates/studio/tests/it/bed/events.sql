-- Writes $1 finished events, one a second, the newest an hour ago, each with $2 characters of padding.
-- Relies on no index beyond the ones it maintains.
insert into studio.audit_event (at, actor, action, target, outcome, row_count, detail, finished_at)
select
    at,
    case when number % 2 = 0 then 'even' else 'odd' end,
    'sql.query',
    'target ' || number,
    'complete',
    number,
    jsonb_build_object('number', number, 'padding', repeat('x', $2::int4)),
    at
from generate_series(1, $1::int8) as number,
    lateral (select date_trunc('second', now()) - interval '1 hour' - ($1 - number) * interval '1 second' as at) as time
