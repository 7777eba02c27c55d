-- The name of an account.
-- Uses account_pkey.
select name
from studio.account
where id = $1
