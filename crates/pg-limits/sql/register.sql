-- Registers this replica and its caps, by primary key.
select limits.register_v1($1, $2, $3, $4, $5, $6)
