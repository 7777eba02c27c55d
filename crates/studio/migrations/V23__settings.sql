-- Settings changed at run time: a row a setting that somebody has changed, null when it went back to its default.
-- Writers take SHARE ROW EXCLUSIVE on the table, so that they change it one by one; readers wait for nobody.
create table studio.setting (
    name text primary key,
    value text,
    changed_at timestamptz not null default clock_timestamp(),
    changed_by text not null,
    -- The number of the change: the highest is the version of all settings.
    revision bigint not null
);
