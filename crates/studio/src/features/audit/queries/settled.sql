-- The oldest transaction still running: what older ones wrote can be read and changes no more.
-- Reads no table.
select pg_snapshot_xmin(pg_current_snapshot())::text
