-- Ends an attempt that did not fail, in one round trip. Rows by primary key, in the order of (name, key).
select limits.end_attempt_v1($1, $2, $3, $4)
