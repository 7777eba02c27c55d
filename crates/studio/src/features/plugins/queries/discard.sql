-- Deletes an upload that failed, with its pieces; also one whose last step may have succeeded unheard.
-- Uses plugin_pkey and plugin_chunk_pkey.
delete from studio.plugin
where id = $1
