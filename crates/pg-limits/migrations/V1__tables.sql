-- The tables that survive a crash: caps in force, and the replicas that registered them.
-- Primary keys only; every write is a handful of rows at start, at a heartbeat or by an operator.
create table limits.limit_setting (
    name text primary key,
    cap_set int4 check (cap_set >= 0),
    in_force int4 not null check (in_force >= 0),
    changed_at timestamptz not null default clock_timestamp()
);
comment on table limits.limit_setting is
    'Caps by endpoint, and ''installation''. in_force is what a claim reads: cap_set when an operator set one, else the smallest that a live replica registered.';

create table limits.replica (
    id uuid primary key,
    name text not null,
    version text not null,
    state text not null check (state in ('starting', 'ready', 'draining', 'stopped')),
    started_at timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

create table limits.limit_registration (
    replica uuid not null references limits.replica (id) on delete cascade,
    name text not null,
    cap int4 not null check (cap >= 0),
    primary key (replica, name)
);

create table limits.grantee (
    role text primary key
);
comment on table limits.grantee is 'Roles that may claim; repair_v1 grants them a table that it had to make anew.';
