-- The views that the SQL console reads: the columns of its allow-list and nothing else.
-- Creates a schema of its own; takes short locks on the tables that the views name.
create schema console;

-- The trail without the text of queries, which belongs to its author and to the trail's own page.
create view console.audit_event with (security_barrier) as
select
    id,
    at,
    actor_id,
    actor,
    action,
    target,
    outcome,
    bound,
    row_count,
    case when action <> 'sql.query' then detail end as detail,
    replica,
    request_id,
    finished_at
from studio.audit_event;

-- Accounts without their password hashes.
create view console.account with (security_barrier) as
select id, name, role, is_disabled, created_at
from studio.account;
