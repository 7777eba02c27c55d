-- Ends a backend that did not obey a cancel.
-- Relies on no index or lock; the caller's role needs pg_signal_backend for other roles' backends.
select pg_terminate_backend($1::int4)
