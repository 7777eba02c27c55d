-- Frees the permit's own row and nothing else; false when it had lapsed, or was freed before.
-- Finds the row by primary key (scope, slot); the permit's id keeps it from freeing a successor.
create function limits.release_v1(p_scope text, p_slot int4, p_permit uuid) returns boolean
language plpgsql
as $$
begin
    update limits.heavy_permit p
    set permit = null, ends_at = '-infinity'
    where p.scope = p_scope and p.slot = p_slot and p.permit = p_permit;
    return found;
end
$$;

-- Frees a permit whose slot its holder never learnt (an answer lost on the way).
-- Scans the scope, which has at most as many rows as the installation's cap.
create function limits.release_by_id_v1(p_permit uuid) returns boolean
language plpgsql
as $$
begin
    update limits.heavy_permit p
    set permit = null, ends_at = '-infinity'
    where p.permit = p_permit;
    return found;
end
$$;

-- Frees all that one replica still holds: the last act of an orderly shutdown.
-- Scans the scope, as release_by_id_v1 does.
create function limits.release_replica_v1(p_replica uuid) returns int4
language plpgsql
as $$
declare
    v_freed int4;
begin
    update limits.heavy_permit p
    set permit = null, ends_at = '-infinity'
    where p.replica = p_replica and p.permit is not null;
    get diagnostics v_freed = row_count;
    return v_freed;
end
$$;
