-- Times around all events, as a request gives them.
-- Uses audit_event_at_idx, one row from each end.
select
    to_char(min(at) at time zone 'UTC' - interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    to_char(max(at) at time zone 'UTC' + interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
from studio.audit_event
