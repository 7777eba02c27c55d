-- Shadow mode: while an endpoint's cap is in it, that cap refuses nothing, and claims tell what it would
-- have refused. Read with the cap, by the primary key; written under the lock that a cap changes under.
alter table limits.limit_setting
    add column is_shadow boolean not null default false,
    add constraint limit_setting_shadow_check check (not is_shadow or name <> 'installation');
comment on column limits.limit_setting.is_shadow is
    'A user''s own cap of this endpoint refuses nothing. Never the installation''s cap, nor the half of it that one user may hold.';

-- Puts an endpoint's cap into shadow mode, or back in force, for the whole installation. One row by
-- primary key; it holds for every claim that begins after the call returns.
create function limits.set_shadow_v1(p_name text, p_is_shadow boolean) returns void
language plpgsql
as $$
begin
    if p_is_shadow and p_name = 'installation' then
        raise exception 'the installation''s cap is never in shadow mode'
            using errcode = 'invalid_parameter_value';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('limits.caps', 0));
    lock table limits.limit_setting in access exclusive mode;
    insert into limits.limit_setting as s (name, in_force, is_shadow)
    values (p_name, 0, p_is_shadow)
    on conflict (name) do update
    set is_shadow = p_is_shadow, changed_at = clock_timestamp();
    perform limits.refresh_caps_v1();
end
$$;

-- A better body for claim_v1, to the same contract (V3 and V9 tell how it counts): a grant that the
-- user's cap would have refused, were it not in shadow mode, carries that cap and what was live.
create or replace function limits.claim_v1(
    p_permit uuid,
    p_endpoint text,
    p_user_id text,
    p_replica uuid,
    p_bound_ms int8,
    p_margin_ms int8,
    out outcome text,
    out scope text,
    out slot int4,
    out ends_at timestamptz,
    out cap int4,
    out live int4,
    out earliest_ms int8
)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
    v_user_cap int4;
    v_cap int4;
    v_is_shadow boolean;
    v_now timestamptz;
    v_give_up_at timestamptz;
    v_live int4;
    v_above int4;
    v_of_endpoint int4;
    v_of_user int4;
    v_held int4;
    v_mask int4 := hashtext(p_permit::text) & 1073741823;
    v_free int4;
    v_tries int4 := 0;
    v_has_user_lock boolean;
    v_has_scope_lock boolean := false;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'limits.claim_v1 counts in fresh snapshots: call it in READ COMMITTED'
            using errcode = 'invalid_transaction_state';
    end if;
    -- A cap changes under an ACCESS EXCLUSIVE lock of this table: no claim that read the old cap is
    -- still under way when one that reads the new cap begins.
    select u.in_force, u.is_shadow, i.in_force
    into v_user_cap, v_is_shadow, v_cap
    from limits.limit_setting u, limits.limit_setting i
    where u.name = p_endpoint and i.name = 'installation';
    if not found then
        raise exception 'no cap is registered for endpoint %', p_endpoint using errcode = 'LM001';
    end if;

    v_has_user_lock := pg_try_advisory_xact_lock(hashtextextended(p_user_id, hashtext('limits.user')));
    loop
        v_now := clock_timestamp();
        -- The slot that is nearest to the permit's own mask, so that claims under way try different ones.
        select
            count(*) filter (where p.ends_at > v_now),
            count(*) filter (where p.ends_at > v_now and p.slot >= v_cap),
            count(*) filter (where p.ends_at > v_now and p.user_id = p_user_id and p.endpoint = p_endpoint),
            count(*) filter (where p.ends_at > v_now and p.user_id = p_user_id),
            min(p.slot) filter (where p.ends_at > v_now and p.permit = p_permit),
            min(p.slot # v_mask) filter (where p.ends_at <= v_now and p.slot < v_cap) # v_mask
        into v_live, v_above, v_of_endpoint, v_of_user, v_held, v_free
        from limits.heavy_permit p
        where p.scope = 'installation';

        if v_held is not null then
            select 'granted', p.scope, p.slot, p.ends_at
            into outcome, scope, slot, ends_at
            from limits.heavy_permit p
            where p.scope = 'installation' and p.slot = v_held;
            return;
        end if;

        -- These are refusals whether or not we hold a lock: the snapshot shows the cap reached.
        if v_of_endpoint >= v_user_cap and not v_is_shadow then
            outcome := 'refused';
            scope := 'user';
            cap := v_user_cap;
            live := v_of_endpoint;
        elsif v_cap > 0 and v_of_user * 2 >= v_cap then
            outcome := 'refused';
            scope := 'user';
            cap := (v_cap + 1) / 2;
            live := v_of_user;
        elsif v_live >= v_cap then
            outcome := 'refused';
            scope := 'installation';
            cap := v_cap;
            live := v_live;
        end if;
        if outcome is not null then
            -- Of a cap of zero no holder's end says when to come back.
            if cap > 0 then
                select greatest(0, ceil(extract(epoch from min(p.bound_ends_at) - v_now) * 1000))::int8
                into earliest_ms
                from limits.heavy_permit p
                where p.scope = 'installation'
                    and p.ends_at > v_now
                    and (claim_v1.scope = 'installation' or p.user_id = p_user_id);
            end if;
            return;
        end if;

        if not v_has_user_lock then
            perform pg_advisory_xact_lock(hashtextextended(p_user_id, hashtext('limits.user')));
            v_has_user_lock := true;
            continue;
        end if;
        -- A cap was lowered below a slot that is still held: slots no longer bound the count, so
        -- claims go one by one until that slot is free.
        if v_above > 0 and not v_has_scope_lock then
            perform pg_advisory_xact_lock(hashtextextended('installation', hashtext('limits.scope')));
            v_has_scope_lock := true;
            continue;
        end if;

        -- The lock on the slot keeps the update from waiting for another claim of it; the end is looked
        -- at again there, since that claim may have committed after our snapshot.
        if v_free is not null and pg_try_advisory_xact_lock(hashtext('limits.slot'), v_free) then
            -- The ends are computed here, where they are written: nothing waits after this line.
            update limits.heavy_permit p
            set permit = p_permit,
                endpoint = p_endpoint,
                user_id = p_user_id,
                replica = p_replica,
                granted_at = clock_timestamp(),
                bound_ends_at = clock_timestamp() + p_bound_ms * interval '1 ms',
                ends_at = clock_timestamp() + (p_bound_ms + p_margin_ms) * interval '1 ms'
            where p.scope = 'installation' and p.slot = v_free and p.ends_at <= v_now
            returning p.scope, p.slot, p.ends_at
            into scope, slot, ends_at;
            if found then
                outcome := 'granted';
                -- Counted under the user's lock, so this is the refusal that shadow mode held back.
                if v_of_endpoint >= v_user_cap then
                    cap := v_user_cap;
                    live := v_of_endpoint;
                end if;
                return;
            end if;
        end if;

        -- Not full, yet nothing taken: slots not made yet, or one that a claim under way took.
        insert into limits.heavy_permit (scope, slot)
        select 'installation', s.slot
        from generate_series(0, v_cap - 1) s (slot)
        where not exists (
            select from limits.heavy_permit p where p.scope = 'installation' and p.slot = s.slot
        )
        order by s.slot
        on conflict do nothing;
        v_mask := (v_mask + 1) & 1073741823;
        v_tries := v_tries + 1;
        if v_tries > 3 then
            if v_give_up_at is null then
                v_give_up_at := v_now + interval '50 ms';
            elsif v_now > v_give_up_at then
                outcome := 'undecided';
                return;
            end if;
            perform pg_sleep(0.0005);
        end if;
    end loop;
end
$$;
