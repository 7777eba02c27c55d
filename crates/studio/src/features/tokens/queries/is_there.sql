-- Whether that account ($2), or anybody where $2 is null, has this token, live or ended.
-- Uses api_token_pkey.
select exists (
    select
    from studio.api_token
    where id = $1 and account_id = coalesce($2::uuid, account_id)
)
