-- What nobody gets by being anybody: in {database}, names are quoted. The role that serves, {app}, keeps what it uses.
-- Takes short locks on catalogue rows; changes nothing when run again.
revoke connect, temporary on database {database} from public;
grant connect on database {database} to {app};
revoke all on schema public from public;
revoke usage on language plpgsql from public;
revoke all on schema console from public;
