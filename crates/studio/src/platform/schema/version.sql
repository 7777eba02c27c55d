-- The newest migration applied, and the oldest program version that can still use the schema.
-- Reads two tiny tables.
select
    (select coalesce(max(version), 0)::int8 from studio.schema_history) as applied,
    (select coalesce(max(oldest_reader), 0) from studio.schema_floor) as oldest_reader
