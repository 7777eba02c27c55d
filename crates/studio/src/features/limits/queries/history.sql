-- Refusals of one row length ($1) in a period ($2 until before $3), of one limit ($4) or of all, newest first.
-- Uses refusal_count_pkey; reads the period's rows, at most a row a bucket and kind of refusal, and gives at most $5.
select begins_at, limit_name, scope, is_shadow, count
from studio.refusal_count
where minutes = $1
    and begins_at >= date_bin($1 * interval '1 minute', $2, timestamptz '2000-01-01 00:00:00+00')
    and begins_at < $3
    and limit_name = coalesce($4::text, limit_name)
order by begins_at desc, limit_name desc, scope desc, is_shadow desc
limit $5
