-- Changes a setting as the API would, without its checks. By primary key.
insert into studio.setting (name, value, changed_by, revision)
values ($1, $2, 'a test', 1)
on conflict (name) do update
set value = excluded.value
