-- Takes back what was counted in a window that still goes on, by primary key.
select limits.uncount_v1($1, $2, $3, $4)
