-- Deletes a plugin with its pieces; an upload that is under way is none.
-- Uses plugin_pkey and plugin_chunk_pkey; locks that row.
delete from studio.plugin
where id = $1 and completed_at is not null
returning name, size_bytes, sha256
