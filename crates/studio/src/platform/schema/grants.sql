-- What the role that serves may do in Studio's database, and nobody else: {role} and {database} are quoted names.
-- Takes short locks on the tables named; changes nothing when run again.
revoke all on database {database} from public;
grant connect on database {database} to {role};
grant usage on schema studio to {role};
grant select on studio.schema_history, studio.schema_floor to {role};
grant select, insert on studio.account to {role};
grant update (role, is_disabled, password_hash) on studio.account to {role};
grant select, insert, update, delete on studio.session to {role};
grant select, insert, delete on studio.api_token to {role};
grant update (secret_hash, previous_hash, previous_valid_until, revoked_at, last_used_at)
    on studio.api_token to {role};
grant select, insert, delete on studio.plugin to {role};
grant update (size_bytes, sha256, completed_at) on studio.plugin to {role};
grant select, insert on studio.plugin_chunk to {role};
grant select, insert, update on studio.setting to {role};
grant select, insert, update, delete on studio.refusal_count, studio.refusal_flush to {role};
grant select, insert on studio.audit_event to {role};
-- The trail is append-only but for its outcomes.
grant update (outcome, bound, row_count, finished_at) on studio.audit_event to {role};
