-- Asks for the work under a permit to stop. Relies on what limits.ask_stop_v1 relies on.
select scope, slot
from limits.ask_stop_v1($1)
