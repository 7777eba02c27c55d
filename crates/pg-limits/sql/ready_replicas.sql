-- How many replicas are ready, by their heartbeats. Reads a row a replica.
select count(*)
from limits.live_replica
where state = 'ready'
