-- The functions of pg_catalog whose name matches $1 and that everybody may call, as the server writes them.
-- Reads all of pg_proc, some 3,000 rows.
select function.oid::regprocedure::text as signature
from pg_catalog.pg_proc as function
where function.pronamespace = 'pg_catalog'::regnamespace
    and function.proname ~ $1::text
    and (
        function.proacl is null
        or exists (select from aclexplode(function.proacl) as acl where acl.grantee = 0)
    )
order by function.oid
