-- Fills the tables of accounts, sessions, tokens and plugins: 100,000 people with a session and a token each, half of them
-- ended, and as many plugins, nearly all of them whole. Relies on no index.
insert into studio.account (id, name, role, password_hash)
select gen_random_uuid(), 'person-' || number, case when number % 1000 = 0 then 'administrator' else 'viewer' end, ''
from generate_series(1, 100000) as number;

insert into studio.session (id_hash, account_id)
select sha256(account.name::bytea), account.id
from studio.account;

insert into studio.api_token (id, account_id, name, secret_hash, grants, created_at, expires_at)
select
    gen_random_uuid(),
    account.id,
    'x',
    sha256('x'),
    '{}',
    moment.at,
    moment.at + interval '30 days'
from studio.account
cross join lateral (select now() - random() * interval '60 days' as at) as moment;

insert into studio.plugin (id, name, uploaded_by, lapses_at, size_bytes, sha256, completed_at)
select gen_random_uuid(), 'x', account.id, now(), 1, sha256('x'), now()
from studio.account;

insert into studio.plugin (id, name, uploaded_by, lapses_at)
select gen_random_uuid(), 'x', account.id, now() - interval '1 minute' + random() * interval '10 minutes'
from studio.account
limit 20;

insert into studio.plugin_chunk (plugin_id, number, bytes)
select id, 0, 'x'
from studio.plugin;

analyze;
