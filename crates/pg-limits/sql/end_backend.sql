-- Ends a connection of our own whose answer was lost, so that nothing sent on it can still arrive.
-- True while it still ran. A role may end its own connections.
select coalesce(bool_or(pg_terminate_backend(pid)), false)
from pg_stat_activity
where pid = $1 and (extract(epoch from backend_start) * 1000000)::int8 = $2
