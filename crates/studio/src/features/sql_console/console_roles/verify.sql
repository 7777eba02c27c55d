-- What a console role ($1) may do and should not, a row for each. $2: names of dangerous functions; $3: its views.
-- Reads pg_proc, pg_class and pg_database once; takes no lock.
with role as (
    select oid, rolname, rolsuper, rolinherit, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolconfig
    from pg_catalog.pg_roles
    where rolname = $1::text
)
select 'no_role' as kind, $1::text as what
where not exists (select from role)
union all
select 'attribute', attribute.name
from role,
    lateral (values
        ('superuser', rolsuper),
        ('inherit', rolinherit),
        ('createdb', rolcreatedb),
        ('createrole', rolcreaterole),
        ('replication', rolreplication),
        ('bypassrls', rolbypassrls)
    ) as attribute (name, is_set)
where attribute.is_set
union all
select 'member', granted.rolname
from role
join pg_catalog.pg_auth_members as membership on membership.member = role.oid
join pg_catalog.pg_roles as granted on granted.oid = membership.roleid
union all
select 'setting', wanted.name
from role,
    unnest(array[
        'default_transaction_read_only=on', 'search_path=console', 'temp_file_limit=256MB', 'work_mem=8MB',
        'lock_timeout=1s', 'statement_timeout=31s', 'jit=off', 'max_parallel_workers_per_gather=0'
    ]) as wanted (name)
where not wanted.name = any (coalesce(rolconfig, '{}'))
union all
select 'function', function.oid::regprocedure::text
from role
join pg_catalog.pg_proc as function
    on function.pronamespace = 'pg_catalog'::regnamespace and function.proname ~ $2::text
where has_function_privilege(role.oid, function.oid, 'execute')
union all
select 'temporary', current_database()
from role
where has_database_privilege(role.oid, current_database(), 'temporary')
union all
select 'schema', namespace.nspname
from role
join pg_catalog.pg_namespace as namespace
    on namespace.nspname not in ('pg_catalog', 'information_schema', 'console') and namespace.nspname !~ '^pg_t'
where has_schema_privilege(role.oid, namespace.oid, 'usage')
    or has_schema_privilege(role.oid, namespace.oid, 'create')
union all
select 'language', language.lanname
from role
join pg_catalog.pg_language as language on language.lanpltrusted and language.lanname <> 'internal'
where language.lanname <> 'sql' and has_language_privilege(role.oid, language.oid, 'usage')
union all
select 'relation', relation.oid::regclass::text
from role
join pg_catalog.pg_class as relation on relation.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
join pg_catalog.pg_namespace as namespace
    on namespace.oid = relation.relnamespace and namespace.nspname not in ('pg_catalog', 'information_schema')
where not (namespace.nspname = 'console' and relation.relname = any ($3::text[]))
    and case
        when relation.relkind = 'S' then has_sequence_privilege(role.oid, relation.oid, 'usage, select, update')
        else has_any_column_privilege(role.oid, relation.oid, 'select, insert, update, references')
            or has_table_privilege(role.oid, relation.oid, 'delete, truncate, trigger')
    end
union all
select 'view', view.name
from role
cross join unnest($3::text[]) as view (name)
left join pg_catalog.pg_namespace as namespace on namespace.nspname = 'console'
left join pg_catalog.pg_class as relation on relation.relnamespace = namespace.oid and relation.relname = view.name
where not coalesce(has_schema_privilege(role.oid, namespace.oid, 'usage'), false)
    or not coalesce(has_table_privilege(role.oid, relation.oid, 'select'), false)
union all
select 'database', database.datname
from role
join pg_catalog.pg_database as database on database.datallowconn and database.datname <> current_database()
where has_database_privilege(role.oid, database.oid, 'connect')
order by kind, what
