-- Gives the statement that creates the role that serves, with its password when its address has one.
-- Relies on no index; the name is quoted by the server.
select case
    when exists (select from pg_catalog.pg_roles where rolname = $1::text) then
        case when $2::text is null then 'select 1' else format('alter role %I login password %L', $1, $2) end
    when $2::text is null then format('create role %I login', $1)
    else format('create role %I login password %L', $1, $2)
end
