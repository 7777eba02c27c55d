-- One change of the settings at a time, so that each is checked against all that were made before it.
-- Locks the table against other writers until the transaction ends; readers wait for nobody.
lock table studio.setting in share row exclusive mode
