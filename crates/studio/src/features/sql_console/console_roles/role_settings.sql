-- The settings that every session of a console role begins with: {role} is a quoted name.
-- Changes one row of pg_db_role_setting a statement.
alter role {role} reset all;
alter role {role} set default_transaction_read_only = on;
alter role {role} set search_path = console;
alter role {role} set statement_timeout = '31s';
alter role {role} set lock_timeout = '1s';
alter role {role} set idle_in_transaction_session_timeout = '10s';
alter role {role} set temp_file_limit = '256MB';
alter role {role} set work_mem = '8MB';
alter role {role} set hash_mem_multiplier = 1;
alter role {role} set jit = off;
alter role {role} set max_parallel_workers_per_gather = 0;
alter role {role} set standard_conforming_strings = on;
