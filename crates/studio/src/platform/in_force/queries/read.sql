-- What was changed: a row a changed setting, those back at their default left out.
-- Reads the whole table, which has at most a row a setting.
select name, value
from studio.setting
where value is not null
