-- Makes the permits' table anew where it was lost. Excludes other repairs by an advisory lock.
select limits.repair_v1()
