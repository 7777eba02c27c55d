-- Makes an upload a plugin, if all its pieces ($4) are there and it has not lapsed.
-- Uses plugin_pkey and plugin_chunk_pkey; locks the plugin's row.
update studio.plugin
set size_bytes = $2, sha256 = $3, completed_at = clock_timestamp()
where id = $1
    and completed_at is null
    and lapses_at > clock_timestamp()
    and (select count(*) from studio.plugin_chunk where plugin_id = $1) = $4
returning completed_at
