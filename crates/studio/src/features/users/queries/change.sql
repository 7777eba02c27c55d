-- Writes what an account is from now on; its row is locked.
-- Uses account_pkey.
update studio.account
set role = $2, is_disabled = $3
where id = $1
