-- Changes a setting without Studio's checks, and says so on the bus. By primary key.
with written as (
    insert into studio.setting (name, value, changed_by, revision)
    values ($1, $2, 'bench-limits', 1)
    on conflict (name) do update
    set value = excluded.value
    returning 1
)
select pg_notify('studio.setting', '')
from written
