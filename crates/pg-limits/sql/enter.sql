-- Lets requests in by an in-flight cap and windows in one round trip. Relies on what enter_v1 relies on.
select limits.enter_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
