-- Puts an endpoint's cap into shadow mode, or back in force. One row by primary key.
select limits.set_shadow_v1($1, $2)
