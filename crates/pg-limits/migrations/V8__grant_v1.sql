-- Lets a role claim, release, register and read, and nothing else. By name in each catalogue.
create function limits.grant_v1(p_role text) returns void
language plpgsql
as $$
begin
    insert into limits.grantee (role) values (p_role) on conflict do nothing;
    execute format('grant usage on schema limits to %I', p_role);
    execute format(
        'grant select, insert, update, delete on limits.limit_setting, limits.replica, limits.limit_registration, limits.heavy_permit to %I',
        p_role
    );
    execute format('grant select on limits.live_permit, limits.live_replica to %I', p_role);
    -- LOCK TABLE .. IN ACCESS EXCLUSIVE MODE is what refresh_caps_v1 needs, and DELETE allows it.
    execute format('grant execute on all functions in schema limits to %I', p_role);
    execute format('revoke execute on function limits.grant_v1(text) from %I', p_role);
end
$$;

revoke all on function limits.grant_v1(text) from public;
