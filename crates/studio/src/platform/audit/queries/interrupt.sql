-- Marks acts that must be over but have no outcome, because their replica died.
-- Uses audit_event_overdue_idx (only open rows are in it); rows another replica is marking are skipped.
update studio.audit_event
set outcome = 'interrupted', finished_at = clock_timestamp()
where id in (
    select id
    from studio.audit_event
    where outcome = 'open' and overdue_at < clock_timestamp()
    order by overdue_at, id
    limit 1000
    for update skip locked
)
