-- Says that this replica lives; false when it must register anew. One row by primary key.
select limits.heartbeat_v1($1, $2)
