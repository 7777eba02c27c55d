-- The next rows of an export, oldest first: behind the key ($1, $2), before $3, at most $5 rows. Of these, the rows of
-- transactions older than $4, which have all ended, and rows numbered from $9 on, which come from another server's dump.
-- Uses audit_event_at_idx, or the index of the column that {filter} names: constants of filter.rs on $6, $7 and $8.
select id, at, actor_id, actor, action, target, outcome, bound, row_count, finished_at, request_id, detail::text
from studio.audit_event
where (at, id) > ($1, $2)
    and at < $3
    and (writer < $4::text::xid8 or writer >= $9::text::xid8){filter}
order by at, id
limit $5
