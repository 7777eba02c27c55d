-- Everything that somebody has changed, when and who, those back at their first value included.
-- Reads the whole table, which has at most a row a setting.
select name, value, changed_at, changed_by, revision
from studio.setting
order by name
