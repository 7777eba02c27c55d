-- Sets a cap for the whole installation (null: what replicas registered). One row by primary key.
select limits.set_cap_v1($1, $2)
