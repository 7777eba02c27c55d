-- What an export is measured against: the same columns of the same rows in the same order, by psql.
-- Uses audit_event_at_idx, or sorts: as the planner likes.
copy (
    select id, at, actor_id, actor, action, target, outcome, bound, row_count, finished_at, request_id, detail
    from studio.audit_event
    order by at, id
) to stdout
