-- Ends a session.
-- Uses session_pkey.
delete from studio.session
where id_hash = $1
