-- One change of an account at a time, so that two of them cannot each leave the other's administrator as the last.
-- Takes an advisory lock until the transaction ends, before any row is locked.
select pg_advisory_xact_lock(hashtextextended('studio.account.change', 0))
