-- Lists of accounts, and who the administrators are.
-- Builds two indexes; writing to account waits meanwhile, which is a moment for a table of people.
-- By bytes, so that names that begin alike stand together whatever the database's collation.
create index account_name_bytes_idx on studio.account (name collate "C");
create index account_administrator_idx on studio.account (id)
    where role = 'administrator' and not is_disabled;
