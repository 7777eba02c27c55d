-- Finds the account that may sign in under a canonical name.
-- Uses account_name_key.
select id, name, role, password_hash
from studio.account
where name = $1 and not is_disabled
