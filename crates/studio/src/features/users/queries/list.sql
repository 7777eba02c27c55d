-- Accounts behind a name ($1), from the first name that may begin so ($2) to before the first that may not ($3), in the
-- order of the bytes of their names. Uses account_name_bytes_idx; reads at most $4 rows.
select id, name, role, is_disabled, created_at
from studio.account
where name collate "C" > $1
    and name collate "C" >= $2
    and name collate "C" < $3
order by name collate "C"
limit $4
