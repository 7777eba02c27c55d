-- The caps in force. Reads a row a limit.
select name, cap_set, in_force, is_shadow
from limits.limit_setting
order by name
