-- One line about the server and the trail for a benchmark's output.
-- Reads the catalogue only, no index.
select format(
    'PostgreSQL %s, fsync %s, shared_buffers %s; about %s audit events, %s with indexes',
    current_setting('server_version'),
    current_setting('fsync'),
    current_setting('shared_buffers'),
    reltuples::bigint,
    pg_size_pretty(pg_total_relation_size(oid))
)
from pg_class
where oid = 'studio.audit_event'::regclass
