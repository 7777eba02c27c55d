-- Frees a permit's own row in one round trip, by primary key.
select limits.release_v1($1, $2, $3)
