-- The key of the event that $1 older ones stand behind, as a cursor names it.
-- Uses audit_event_at_idx or the index of the filter's column, $1 + 1 rows of it.
select (extract(epoch from at) * 1000000)::int8 as microseconds, id
from studio.audit_event
where {filter}
order by at, id
offset $1
limit 1
