-- Gives a statement for every role that the console's role is a member of, to leave it.
-- Reads pg_auth_members by its index on the member.
select format('revoke %I from %I', granted.rolname, member.rolname)
from pg_catalog.pg_auth_members as membership
join pg_catalog.pg_roles as member on member.oid = membership.member
join pg_catalog.pg_roles as granted on granted.oid = membership.roleid
where member.rolname = $1::text
order by granted.rolname
