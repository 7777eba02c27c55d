-- Deletes uploads that were abandoned, with their pieces, a few at a time: each has up to 50 MB.
-- Uses plugin_lapsed_idx; rows that another replica deletes are skipped.
delete from studio.plugin
where id in (
    select id
    from studio.plugin
    where completed_at is null and lapses_at <= statement_timestamp()
    order by lapses_at, id
    limit 10
    for update skip locked
)
