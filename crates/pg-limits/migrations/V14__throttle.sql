-- Throttles: one row a throttle and key, found by its primary key and changed under its row lock.
-- No index holds a column that changes (HOT), and half of each page is left for the versions of its own rows.
insert into limits.unlogged_table (name, definition, views, is_swept)
values (
    'throttle',
    $definition$
    create unlogged table limits.throttle (
        name text not null,
        key text not null,
        failures int4 not null default 0,
        window_ends_at timestamptz not null default '-infinity',
        level int4 not null default 0,
        blocked_until timestamptz not null default '-infinity',
        forgotten_at timestamptz not null default '-infinity',
        reservations uuid[] not null default '{}',
        reservation_ends timestamptz[] not null default '{}',
        lapses_at timestamptz not null,
        primary key (name, key)
    ) with (
        fillfactor = 50,
        autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0
    );
    create view limits.blocked_key as
        select name, key, level, blocked_until, forgotten_at
        from limits.throttle
        where blocked_until > clock_timestamp();
    $definition$,
    '{blocked_key}',
    true
);

select limits.repair_v1();
