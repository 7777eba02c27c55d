-- Begins an upload that nobody sees until it is complete, and that has lapsed after so many milliseconds ($4).
-- Relies on no index beyond the ones it maintains.
insert into studio.plugin (id, name, uploaded_by, lapses_at)
values ($1, $2, $3, clock_timestamp() + $4::int8 * interval '1 millisecond')
