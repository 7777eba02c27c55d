-- Removes one batch of rows that nobody will come back to. Excludes other sweeps by an advisory lock.
select limits.sweep_v1($1)
