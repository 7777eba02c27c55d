-- Which of these permits somebody wants stopped. By primary key.
select permit
from limits.stop_request
where permit = any($1)
order by permit
