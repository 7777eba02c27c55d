-- What is settled when an export begins: horizon, the oldest transaction that still writes to the trail, or else the
-- next one; next, the next one; began, a time before which nothing will be written any more but by the former.
-- Relies on the lock that every writer holds on the table until it ends. A writer takes its number under that lock, and
-- its rows' times after its number. Locks give the low half of a number, which is completed from the next one's.
with snapshot as (
    select pg_snapshot_xmax(pg_current_snapshot())::text::int8 as next
),
writing as (
    select distinct virtualtransaction
    from pg_locks
    where locktype = 'relation'
        and database = (select oid from pg_database where datname = current_database())
        and relation = 'studio.audit_event'::regclass
        and mode = 'RowExclusiveLock'
        and granted
),
oldest as (
    select max((next % 4294967296 - number.transactionid::text::int8 + 4294967296) % 4294967296) as behind
    from pg_locks as number
    join writing using (virtualtransaction)
    cross join snapshot
    where number.locktype = 'transactionid'
        and number.mode = 'ExclusiveLock'
        and number.granted
        -- One that began after the snapshot is behind nothing.
        and (next % 4294967296 - number.transactionid::text::int8 + 4294967296) % 4294967296 between 1 and 2147483648
)
select
    (next - coalesce(behind, 0))::text as horizon,
    next::text as next,
    statement_timestamp() as began
from snapshot
cross join oldest
