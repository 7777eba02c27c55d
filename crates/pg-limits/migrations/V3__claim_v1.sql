-- Claims one permit in both scopes, all or nothing: one row of limits.heavy_permit is one live permit.
-- A user's claims exclude each other by an advisory lock until they commit; a free slot is taken by its
-- primary key with SKIP LOCKED, so no claim ever waits for a row. See docs/adr/0003.
--
-- outcome    'granted', 'refused' or 'undecided' (not proved full within 50 ms: neither grant nor refusal)
-- scope      the scope that refused: 'user' or 'installation'; of a grant, the scope of its row
-- slot       of a grant: (scope, slot) is the row's primary key, which release_v1 wants back
-- ends_at    of a grant: when the permit lapses by itself
-- cap, live  of a refusal: the limit reached, and the live permits that one snapshot showed
-- earliest_ms  of a refusal: until the first of those holders reaches its time bound
create function limits.claim_v1(
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
    v_now timestamptz;
    v_give_up_at timestamptz;
    v_live int4;
    v_above int4;
    v_of_endpoint int4;
    v_of_user int4;
    v_held int4;
    v_start int4;
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
    select u.in_force, i.in_force
    into v_user_cap, v_cap
    from limits.limit_setting u, limits.limit_setting i
    where u.name = p_endpoint and i.name = 'installation';
    if not found then
        raise exception 'no cap is registered for endpoint %', p_endpoint using errcode = 'LM001';
    end if;

    v_start := (hashtextextended(p_permit::text, 0) & 2147483647) % greatest(v_cap, 1);
    v_has_user_lock := pg_try_advisory_xact_lock(hashtextextended(p_user_id, hashtext('limits.user')));
    loop
        v_now := clock_timestamp();
        select
            count(*),
            count(*) filter (where p.slot >= v_cap),
            count(*) filter (where p.user_id = p_user_id and p.endpoint = p_endpoint),
            count(*) filter (where p.user_id = p_user_id),
            min(p.slot) filter (where p.permit = p_permit)
        into v_live, v_above, v_of_endpoint, v_of_user, v_held
        from limits.heavy_permit p
        where p.scope = 'installation' and p.ends_at > v_now;

        if v_held is not null then
            select 'granted', p.scope, p.slot, p.ends_at
            into outcome, scope, slot, ends_at
            from limits.heavy_permit p
            where p.scope = 'installation' and p.slot = v_held;
            return;
        end if;

        -- These are refusals whether or not we hold a lock: the snapshot shows the cap reached.
        if v_of_endpoint >= v_user_cap then
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

        -- The ends are computed here, where they are written: nothing waits after this line.
        update limits.heavy_permit p
        set permit = p_permit,
            endpoint = p_endpoint,
            user_id = p_user_id,
            replica = p_replica,
            granted_at = clock_timestamp(),
            bound_ends_at = clock_timestamp() + p_bound_ms * interval '1 ms',
            ends_at = clock_timestamp() + (p_bound_ms + p_margin_ms) * interval '1 ms'
        from (
            select f.scope, f.slot
            from limits.heavy_permit f
            where f.scope = 'installation'
                and f.slot >= v_start
                and f.slot < v_cap
                and f.ends_at <= v_now
            limit 1
            for update skip locked
        ) free
        where p.scope = free.scope and p.slot = free.slot
        returning p.scope, p.slot, p.ends_at
        into scope, slot, ends_at;
        if found then
            outcome := 'granted';
            return;
        end if;
        if v_start > 0 then
            v_start := 0;
            continue;
        end if;

        -- Not full, yet nothing to take: slots not made yet, or one that a claim under way holds.
        insert into limits.heavy_permit (scope, slot)
        select 'installation', s.slot
        from generate_series(0, v_cap - 1) s (slot)
        where not exists (
            select from limits.heavy_permit p where p.scope = 'installation' and p.slot = s.slot
        )
        order by s.slot
        on conflict do nothing;
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
