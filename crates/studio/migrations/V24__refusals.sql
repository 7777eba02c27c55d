-- Refusals over time, counted by every replica and added up here.
-- Creates new tables only.
create table studio.refusal_count (
    -- How long a row's time is. Every refusal is counted once in rows of each length, so that a long period is read
    -- from few rows.
    minutes integer not null check (minutes > 0),
    begins_at timestamptz not null,
    limit_name text not null,
    -- Whose limit it was: of a user, a token, a network, the installation.
    scope text not null,
    -- Only counted, and not refused.
    is_shadow boolean not null,
    count bigint not null check (count > 0),
    primary key (minutes, begins_at, limit_name, scope, is_shadow)
)
-- A row is added to in place.
with (fillfactor = 80);

-- The last batch that each replica has added, so that a batch whose answer was lost is not added twice.
create table studio.refusal_flush (
    replica uuid primary key,
    batch bigint not null,
    flushed_at timestamptz not null default clock_timestamp()
)
with (fillfactor = 80);
