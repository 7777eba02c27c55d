-- Locks the account that is to own one token more, so that two requests at once count each other's, and so that an
-- account which is being disabled gets none. Uses account_pkey; locks that row until the transaction ends.
select role
from studio.account
where id = $1 and not is_disabled
for no key update
