-- Deletes tokens that ended 30 days ago or earlier, a batch at a time.
-- Uses api_token_end_idx; rows that another replica deletes are skipped.
delete from studio.api_token
where id in (
    select id
    from studio.api_token
    where least(expires_at, revoked_at) <= clock_timestamp() - interval '30 days'
    order by least(expires_at, revoked_at)
    limit 1000
    for update skip locked
)
