-- Whether a permit still has its place; no row when the table was emptied. By primary key.
select permit is not distinct from $3 and ends_at > clock_timestamp()
from limits.heavy_permit
where scope = $1 and slot = $2
