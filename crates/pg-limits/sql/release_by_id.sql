-- Frees a permit whose slot is unknown. Scans the scope.
select limits.release_by_id_v1($1)
