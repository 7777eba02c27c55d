-- Ends all sessions of an account, whose row is locked.
-- Uses session_account_idx.
delete from studio.session
where account_id = $1
