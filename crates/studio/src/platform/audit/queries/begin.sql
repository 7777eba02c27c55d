-- Writes the row of an act that is about to begin. $8 is how long, in milliseconds, it may stay without outcome.
-- Relies on no index beyond the ones it maintains.
insert into studio.audit_event (actor_id, actor, action, target, detail, replica, request_id, overdue_at)
values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::int8 * interval '1 millisecond')
returning id
