-- Finds the account of a session that is neither idle for 8 hours nor older than 24.
-- Uses session_pkey and account_pkey.
select
    account.id as account_id,
    account.name,
    account.role,
    session.last_used_at < clock_timestamp() - interval '1 minute' as is_stale
from studio.session
join studio.account on account.id = session.account_id
where session.id_hash = $1
    and session.created_at > clock_timestamp() - interval '24 hours'
    and session.last_used_at > clock_timestamp() - interval '8 hours'
    and not account.is_disabled
