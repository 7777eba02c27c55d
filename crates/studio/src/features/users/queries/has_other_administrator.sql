-- Whether somebody else ($1) is an administrator and enabled. Changes take turns, so that it stays true.
-- Uses account_administrator_idx; reads two rows at most.
select exists (
    select
    from studio.account
    where role = 'administrator' and not is_disabled and id <> $1
)
