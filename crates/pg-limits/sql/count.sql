-- Counts in a window in one round trip, by primary key.
select limits.count_v1($1, $2, $3, $4, $5)
