-- One page of the trail, newest first: behind the key ($1, $2), not before $3, skipping $4, at most $5 rows.
-- Uses audit_event_at_idx, or the index of the column that {filter} names: constants of filter.rs on $6, $7 and $8.
select id, at, actor_id, actor, action, target, outcome, bound, row_count, finished_at, request_id, detail::text
from studio.audit_event
where (at, id) < ($1, $2)
    and at >= $3{filter}
order by at desc, id desc
offset $4
limit $5
