-- Makes every transaction that writes a setting fail at its commit.
create function studio.refuse_at_commit() returns trigger language plpgsql as $$
begin
    raise exception 'refused by a test';
end
$$;
create constraint trigger refuse_at_commit
after insert or update on studio.setting
deferrable initially deferred
for each row execute function studio.refuse_at_commit()
