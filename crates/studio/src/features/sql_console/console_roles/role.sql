-- Gives the statement that creates or resets a login role of the console, with its password when there is one.
-- Relies on no index; the server quotes the name and the password.
select format(
    '%s role %I with login nosuperuser nocreatedb nocreaterole noinherit noreplication nobypassrls connection limit %s%s',
    case when exists (select from pg_catalog.pg_roles where rolname = $1::text) then 'alter' else 'create' end,
    $1,
    $2::int4,
    case when $3::text is null then '' else format(' password %L', $3) end
)
