-- Ends a live token of that account ($2), or of anybody where $2 is null.
-- Uses api_token_pkey; locks that row.
update studio.api_token
set revoked_at = clock_timestamp()
where id = $1
    and account_id = coalesce($2::uuid, account_id)
    and revoked_at is null
    and expires_at > clock_timestamp()
returning account_id, name
