-- Admits an attempt under its throttles in one round trip. Relies on what limits.attempt_v1 relies on.
select outcome, place, retry_ms, reserved, shadow_place, shadow_retry_ms
from limits.attempt_v1($1, $2, $3, $4, $5, $6)
