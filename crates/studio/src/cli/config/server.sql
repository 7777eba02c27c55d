-- What the server allows, and whether the SQL console's login roles exist.
-- Reads settings and a catalogue.
select
    current_setting('max_connections')::int4 as max_connections,
    (
        select count(*)
        from pg_catalog.pg_roles
        where rolname in ('studio_console_viewer', 'studio_console_operator', 'studio_console_administrator')
    ) as console_roles
