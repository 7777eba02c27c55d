-- Live permits with their holders, oldest first. Scans the scope.
select
    permit,
    endpoint,
    user_id,
    replica,
    (extract(epoch from clock_timestamp() - granted_at) * 1000)::int8 as held_ms,
    (extract(epoch from bound_ends_at - clock_timestamp()) * 1000)::int8 as remaining_ms
from limits.live_permit
order by granted_at, permit
