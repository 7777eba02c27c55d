-- Which server process serves this connection: its pid, and its start, since pids come round again.
select pid, (extract(epoch from backend_start) * 1000000)::int8 as started_us
from pg_stat_activity
where pid = pg_backend_pid()
