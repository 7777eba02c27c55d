-- Records what was done at the command line, as a whole.
-- Relies on no index beyond the ones it maintains.
insert into studio.audit_event (actor, action, target, detail, outcome, finished_at)
values ('(command line)', $1, $2, $3, 'complete', clock_timestamp())
