-- Claims a permit in one round trip. Relies on what limits.claim_v1 relies on.
select outcome, scope, slot, cap, live, earliest_ms
from limits.claim_v1($1, $2, $3, $4, $5, $6)
