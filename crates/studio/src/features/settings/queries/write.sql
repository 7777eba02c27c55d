-- Writes changed settings ($1) with their values ($2), null for those that go back to their first value, as one change
-- by somebody ($3) with a number ($4). Uses setting_pkey; the writer has locked the table.
insert into studio.setting as own (name, value, changed_at, changed_by, revision)
select changed.name, changed.value, clock_timestamp(), $3, $4
from unnest($1::text[], $2::text[]) as changed (name, value)
order by changed.name
on conflict (name) do update
set value = excluded.value,
    changed_at = excluded.changed_at,
    changed_by = excluded.changed_by,
    revision = excluded.revision
