-- Deletes tokens that ended 30 days ago or earlier, a batch at a time.
-- Uses api_token_end_idx up to that time, then the rows' own places; rows that another replica deletes are skipped.
delete from studio.api_token
where ctid = any (array(
    select ctid
    from studio.api_token
    where least(expires_at, revoked_at) <= statement_timestamp() - interval '30 days'
    order by least(expires_at, revoked_at)
    limit 1000
    for update skip locked
))
