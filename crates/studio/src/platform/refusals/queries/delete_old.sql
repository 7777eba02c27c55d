-- Deletes a batch of the oldest counts of one length ($1), and what is known of replicas that ended, 30 days old.
-- Uses refusal_count_pkey; reads refusal_flush whole, a row a start of a replica.
with flushed as (
    delete from studio.refusal_flush
    where flushed_at < clock_timestamp() - interval '30 days'
)
delete from studio.refusal_count
where (minutes, begins_at, limit_name, scope, is_shadow) in (
    select minutes, begins_at, limit_name, scope, is_shadow
    from studio.refusal_count
    where minutes = $1 and begins_at < clock_timestamp() - interval '30 days'
    order by minutes, begins_at, limit_name, scope, is_shadow
    limit 1000
    for update skip locked
)
