-- Finds a live token whose owner may sign in, with the hashes of the secrets that it goes by now.
-- Uses api_token_pkey and account_pkey.
select
    account.id as account_id,
    account.name,
    account.role,
    api_token.secret_hash,
    case when api_token.previous_valid_until > clock_timestamp() then api_token.previous_hash end
        as previous_hash,
    api_token.grants,
    coalesce(api_token.last_used_at < clock_timestamp() - interval '1 minute', true) as is_stale
from studio.api_token
join studio.account on account.id = api_token.account_id
where api_token.id = $1
    and api_token.revoked_at is null
    and api_token.expires_at > clock_timestamp()
    and not account.is_disabled
