-- Takes the demo's events in COPY's text format.
-- Relies on no index beyond the ones it maintains.
copy studio.audit_event
    (at, actor_id, actor, action, target, outcome, bound, row_count, detail, finished_at)
from stdin
