-- Asking the replica that holds a permit to stop its work. The replicas look; nothing here frees a permit.
-- Rows are found by primary key. After a crash nothing is asked any more, as nothing is held any more.
insert into limits.unlogged_table (name, definition, is_swept)
values (
    'stop_request',
    $definition$
    create unlogged table limits.stop_request (
        permit uuid primary key,
        asked_at timestamptz not null default clock_timestamp(),
        lapses_at timestamptz not null
    );
    $definition$,
    true
);

select limits.repair_v1();

-- Writes that a live permit's work should stop, once, and tells where the permit stands; nulls when no such
-- permit is live. Scans the scopes' slots; the row goes by itself when the permit's lease has ended.
create function limits.ask_stop_v1(p_permit uuid, out scope text, out slot int4)
language plpgsql
as $$
declare
    v_ends_at timestamptz;
begin
    select p.scope, p.slot, p.ends_at
    into scope, slot, v_ends_at
    from limits.live_permit p
    where p.permit = p_permit;
    if found then
        insert into limits.stop_request (permit, lapses_at)
        values (p_permit, v_ends_at)
        on conflict (permit) do nothing;
    end if;
end
$$;
