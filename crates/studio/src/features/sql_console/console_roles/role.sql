-- Gives the statement that creates or resets a login role of the console, with its password when there is one.
-- Relies on no index; the server quotes names. Takes away only what the role has: for some of it even a "no" needs a superuser.
select format(
    '%s role %I with login noinherit connection limit %s%s%s',
    case when role.rolname is null then 'create' else 'alter' end,
    wanted.name,
    $2::int4,
    concat(
        case when role.rolsuper then ' nosuperuser' end,
        case when role.rolcreatedb then ' nocreatedb' end,
        case when role.rolcreaterole then ' nocreaterole' end,
        case when role.rolreplication then ' noreplication' end,
        case when role.rolbypassrls then ' nobypassrls' end
    ),
    case when $3::text is null then '' else format(' password %L', $3) end
)
from (values ($1::text)) as wanted (name)
left join pg_catalog.pg_roles as role on role.rolname = wanted.name
