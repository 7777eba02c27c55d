-- Notes that a token is in use, at most once a minute.
-- Uses api_token_pkey; changes no indexed column.
update studio.api_token
set last_used_at = clock_timestamp()
where id = $1
    and coalesce(last_used_at < clock_timestamp() - interval '1 minute', true)
