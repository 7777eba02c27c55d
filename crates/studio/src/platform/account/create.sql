-- Creates an account unless its name is taken; gives the row written, or nothing.
-- Uses account_name_key to decide.
insert into studio.account (id, name, role, password_hash)
values ($1, $2, $3, $4)
on conflict (name) do nothing
returning id, created_at
