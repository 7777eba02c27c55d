-- Notes that a session is in use, at most once a minute.
-- Uses session_pkey; a session being deleted stays deleted.
update studio.session
set last_used_at = clock_timestamp()
where id_hash = $1 and last_used_at < clock_timestamp() - interval '1 minute'
