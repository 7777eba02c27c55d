-- Deletes sessions that have ended, a batch at a time.
-- Uses session_created_at_idx for the oldest; idle ones are few and found when their day is over.
delete from studio.session
where id_hash in (
    select id_hash
    from studio.session
    where created_at <= clock_timestamp() - interval '24 hours'
    order by created_at
    limit 1000
    for update skip locked
)
