-- How many rows a filter leaves between $1 and $2, counted no further than $3.
-- Uses audit_event_at_idx, or the index of the column that {filter} names: constants of filter.rs on $6, $7 and $8.
select count(*)
from (
    select 1
    from studio.audit_event
    where at < $1
        and at >= $2{filter}
    limit $3
) as counted
