-- How many sessions of the SQL console's roles are at work right now.
-- Reads the server's process table; the caller's role must be allowed to see others' state.
select count(*)
from pg_stat_activity
where usename like 'studio\_console\_%'
    and state in ('active', 'idle in transaction')
