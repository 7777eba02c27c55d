-- Gives an account another password; where $3 is given, only while it is still the one of that hash.
-- Uses account_pkey; locks that row, so that no session begins by the old password meanwhile.
update studio.account
set password_hash = $2
where id = $1
    and password_hash = coalesce($3::text, password_hash)
returning name
