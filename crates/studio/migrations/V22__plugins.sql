-- Plugins as they were uploaded: a row each, their bytes in pieces.
-- Creates new tables only; the key to account takes a short lock there.
create table studio.plugin (
    -- UUIDv7, so that the newest stands last.
    id uuid primary key,
    name text not null check (char_length(name) between 1 and 200),
    uploaded_by uuid not null references studio.account (id),
    -- Until completed_at is set an upload is under way, and shown to nobody. One that has not ended by lapses_at was
    -- abandoned.
    lapses_at timestamptz not null,
    size_bytes integer check (size_bytes between 1 and 52428800),
    sha256 bytea check (octet_length(sha256) = 32),
    completed_at timestamptz,
    check (num_nulls(size_bytes, sha256, completed_at) in (0, 3))
);
create index plugin_lapsed_idx on studio.plugin (lapses_at) where completed_at is null;

create table studio.plugin_chunk (
    plugin_id uuid not null references studio.plugin (id) on delete cascade,
    number integer not null,
    bytes bytea not null check (octet_length(bytes) between 1 and 1048576),
    primary key (plugin_id, number)
);
-- Plugins are archives: trying to compress them again would only cost.
alter table studio.plugin_chunk alter column bytes set storage external;
