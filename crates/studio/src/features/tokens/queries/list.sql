-- The tokens of an account: all that live, since their end lies furthest ahead, and those that ended last.
-- Uses api_token_account_end_idx; reads at most $2 rows.
select
    id,
    name,
    grants,
    created_at,
    expires_at,
    revoked_at,
    last_used_at,
    previous_valid_until,
    least(expires_at, revoked_at) > clock_timestamp() as is_live
from studio.api_token
where account_id = $1
order by least(expires_at, revoked_at) desc, id desc
limit $2
