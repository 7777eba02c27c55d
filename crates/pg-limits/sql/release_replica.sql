-- Frees what a replica still holds at its shutdown. Scans the scope.
select limits.release_replica_v1($1)
