-- Begins a session of an account that may still sign in by the password that was checked ($4), and ends the one that
-- the same browser held ($3, may be null). Uses account_pkey and session_pkey; locks the account's row: whatever ends
-- its sessions has either happened, and none begins, or comes after, and ends this one too.
with owner as (
    select id
    from studio.account
    where id = $2 and not is_disabled and password_hash = $4
    for share
),
ended as (
    delete from studio.session
    where id_hash = $3::bytea
)
insert into studio.session (id_hash, account_id)
select $1, owner.id
from owner
