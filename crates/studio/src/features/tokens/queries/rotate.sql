-- Gives a live token a new secret; the one before goes on for 24 hours, and one before that ends now.
-- Uses api_token_pkey; locks that row, and a token that was revoked meanwhile is no longer found.
update studio.api_token
set
    previous_hash = secret_hash,
    previous_valid_until = clock_timestamp() + interval '24 hours',
    secret_hash = $3
where id = $1
    and account_id = $2
    and revoked_at is null
    and expires_at > clock_timestamp()
returning
    id,
    name,
    grants,
    created_at,
    expires_at,
    revoked_at,
    last_used_at,
    previous_valid_until,
    true as is_live
