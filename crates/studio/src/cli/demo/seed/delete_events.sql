-- Deletes the events that an earlier seeding wrote, which are marked in their detail.
-- Reads the whole table: only a demonstration does this.
delete from studio.audit_event
where detail @> '{"demo": true}'
