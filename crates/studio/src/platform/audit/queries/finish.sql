-- Writes the outcome of an act, once: a row that has one stays as it is, except that a late outcome replaces a guess.
-- Uses audit_event_pkey.
update studio.audit_event
set outcome = $2, bound = $3, row_count = $4, finished_at = clock_timestamp()
where id = $1 and outcome in ('open', 'interrupted')
