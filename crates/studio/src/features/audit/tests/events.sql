-- Writes $1 events, one a second: forty actors, one with ten events, five actions, almost all complete.
-- Relies on no index beyond the ones it maintains.
insert into studio.audit_event (at, actor, action, target, outcome, detail)
select
    timestamptz '2026-01-01' + number * interval '1 second',
    case when number % ($1 / 10) = 0 then 'rare' else 'actor-' || number % 40 end,
    'action-' || number % 5,
    'target',
    case when number % 100 = 0 then 'partial' else 'complete' end,
    '{}'
from generate_series(1, $1::int8) as number
