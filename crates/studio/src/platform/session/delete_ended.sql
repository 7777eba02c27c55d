-- Deletes sessions that have ended, a batch at a time; idle ones are few and found when their day is over.
-- Uses session_created_at_idx up to that time, then the rows' own places; rows that another replica deletes are skipped.
delete from studio.session
where ctid = any (array(
    select ctid
    from studio.session
    where created_at <= statement_timestamp() - interval '24 hours'
    order by created_at
    limit 1000
    for update skip locked
))
