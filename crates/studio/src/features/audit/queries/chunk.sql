-- The next rows of an export, oldest first: behind the key ($1, $2), before $3, written by a transaction that had
-- ended when the export began ($4), at most $5 rows.
-- Uses audit_event_at_idx, or the index of the column that {filter} names: constants of filter.rs on $6, $7 and $8.
select id, at, actor_id, actor, action, target, outcome, bound, row_count, finished_at, request_id, detail::text
from studio.audit_event
where (at, id) > ($1, $2)
    and at < $3
    and writer < $4::text::xid8{filter}
order by at, id
limit $5
