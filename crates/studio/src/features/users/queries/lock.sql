-- Locks an account that is to be changed, and gives what it is.
-- Uses account_pkey; locks that row until the transaction ends.
select id, name, role, is_disabled, created_at
from studio.account
where id = $1
for no key update
