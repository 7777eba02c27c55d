-- Creates a token that expires in so many days ($6).
-- Relies on no index beyond the ones it maintains.
insert into studio.api_token (id, account_id, name, secret_hash, grants, created_at, expires_at)
select $1::uuid, $2::uuid, $3::text, $4::bytea, $5::text[], moment.at, moment.at + $6::int4 * interval '24 hours'
from (select clock_timestamp() as at) as moment
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
