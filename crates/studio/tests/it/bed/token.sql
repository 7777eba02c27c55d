-- Gives an account a token, as if it had been created a moment ago.
-- Uses account_name_key.
insert into studio.api_token (id, account_id, name, secret_hash, grants, expires_at)
select $1, account.id, 'of a test', $3, $4, clock_timestamp() + interval '30 days'
from studio.account
where name = $2
