-- Plugins before an id ($1), the newest first.
-- Uses plugin_pkey backwards and account_pkey; passes over uploads that are under way, which are few.
select
    plugin.id,
    plugin.name,
    plugin.size_bytes,
    plugin.sha256,
    plugin.completed_at,
    account.name as uploaded_by
from studio.plugin
join studio.account on account.id = plugin.uploaded_by
where plugin.id < $1
    and plugin.completed_at is not null
order by plugin.id desc
limit $2
