-- Lets requests of several keys in, all or none, in one round trip. Relies on what enter_v2 relies on.
select limits.enter_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
