-- Registered replicas with the state that their heartbeats prove. Reads a row a replica.
select
    id,
    name,
    version,
    state,
    (extract(epoch from clock_timestamp() - started_at) * 1000)::int8 as started_ms_ago,
    (extract(epoch from clock_timestamp() - heartbeat_at) * 1000)::int8 as heartbeat_ms_ago
from limits.live_replica
order by started_at, id
