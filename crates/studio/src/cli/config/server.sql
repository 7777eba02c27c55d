-- What the server allows.
-- Reads a setting.
select current_setting('max_connections')::int4 as max_connections
