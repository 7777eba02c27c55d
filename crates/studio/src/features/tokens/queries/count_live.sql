-- How many live tokens an account has. The account's row is locked.
-- Uses api_token_account_end_idx; reads the live ones only, which are few.
select count(*)
from studio.api_token
where account_id = $1
    and least(expires_at, revoked_at) > statement_timestamp()
