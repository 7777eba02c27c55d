-- API tokens: what programs sign in with instead of a session.
-- Creates a new table only; the key to account takes a short lock there.
create table studio.api_token (
    -- Stands in the secret too, so that a secret is found by this key.
    id uuid primary key,
    account_id uuid not null references studio.account (id) on delete cascade,
    name text not null check (char_length(name) between 1 and 100),
    -- SHA-256 of the whole secret, which is kept nowhere.
    secret_hash bytea not null check (octet_length(secret_hash) = 32),
    -- The secret before the last rotation, which goes on for a day.
    previous_hash bytea check (octet_length(previous_hash) = 32),
    previous_valid_until timestamptz,
    -- Names of permissions. Every request counts only those that the owner's role has then.
    grants text[] not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    revoked_at timestamptz,
    last_used_at timestamptz,
    check (expires_at <= created_at + interval '90 days'),
    check ((previous_hash is null) = (previous_valid_until is null))
)
-- The last use is written once a minute, in place.
with (fillfactor = 80);

-- The end of a token is the earlier of the two; least() leaves a null out.
create index api_token_account_end_idx
    on studio.api_token (account_id, least(expires_at, revoked_at), id);
create index api_token_end_idx on studio.api_token (least(expires_at, revoked_at));
