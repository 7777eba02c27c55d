-- Writes a piece of an upload.
-- Uses plugin_pkey to see that the upload goes on, and locks that row against being swept meanwhile.
insert into studio.plugin_chunk (plugin_id, number, bytes)
values ($1, $2, $3)
