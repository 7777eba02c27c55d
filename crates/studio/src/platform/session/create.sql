-- Begins a session, and ends the one that the same browser held ($3, may be null).
-- Uses session_pkey.
with ended as (
    delete from studio.session
    where id_hash = $3::bytea
)
insert into studio.session (id_hash, account_id)
values ($1, $2)
