-- Studio's first schema: accounts, sessions and the audit trail.
-- Creates new tables only, so it waits for nobody's lock.
create table studio.account (
    id uuid primary key,
    -- Canonical: NFKC, case-folded, trimmed, at most 128 characters.
    name text not null unique,
    role text not null check (role in ('viewer', 'operator', 'administrator')),
    -- argon2id in PHC form.
    password_hash text not null,
    is_disabled boolean not null default false,
    created_at timestamptz not null default clock_timestamp()
);

create table studio.session (
    -- SHA-256 of the id that the browser holds.
    id_hash bytea primary key,
    account_id uuid not null references studio.account (id) on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    last_used_at timestamptz not null default clock_timestamp()
);
create index session_account_idx on studio.session (account_id);
create index session_created_at_idx on studio.session (created_at);

create table studio.audit_event (
    -- The transaction that wrote the row: an export ends behind the oldest one still running.
    writer xid8 not null default pg_current_xact_id(),
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    actor_id uuid,
    actor text not null,
    action text not null,
    target text not null,
    outcome text not null default 'open'
        check (outcome in ('open', 'complete', 'partial', 'aborted_by_client', 'failed', 'interrupted')),
    -- The bound reached (ROWS, TIME, BYTES), or why it failed.
    bound text,
    row_count bigint,
    detail jsonb not null,
    replica uuid,
    request_id text,
    finished_at timestamptz,
    overdue_at timestamptz not null default clock_timestamp()
);
create index audit_event_at_idx on studio.audit_event (at, id);
create index audit_event_actor_idx on studio.audit_event (actor, at, id);
create index audit_event_action_idx on studio.audit_event (action, at, id);
create index audit_event_outcome_idx on studio.audit_event (outcome, at, id);
create index audit_event_overdue_idx on studio.audit_event (overdue_at, id) where outcome = 'open';

create table studio.schema_floor (
    -- Programs that know an older schema version than this cannot use the schema any more. A migration that takes
    -- something away raises it.
    oldest_reader bigint not null
);
insert into studio.schema_floor (oldest_reader) values (0);
