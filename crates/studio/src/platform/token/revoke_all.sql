-- Revokes all live tokens of an account, whose row is locked: none is made meanwhile.
-- Uses api_token_account_end_idx; reads the live ones only.
update studio.api_token
set revoked_at = clock_timestamp()
where account_id = $1
    and least(expires_at, revoked_at) > statement_timestamp()
