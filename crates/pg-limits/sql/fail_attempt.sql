-- Counts a failed attempt in one round trip. Rows by primary key, in the order of (name, key).
select limits.fail_attempt_v1($1, $2, $3, $4, $5, $6, $7, $8, $9)
