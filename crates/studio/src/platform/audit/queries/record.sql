-- Writes the row of an act that the same transaction does: both are there, or neither.
-- Relies on no index beyond the ones it maintains.
insert into studio.audit_event
    (actor_id, actor, action, target, detail, replica, request_id, outcome, finished_at)
values ($1, $2, $3, $4, $5, $6, $7, 'complete', clock_timestamp())
