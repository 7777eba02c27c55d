-- What a console role may do: {role} and {database} are quoted names. Its views are granted one by one.
-- Takes short locks on catalogue rows and on the views; changes nothing when run again.
grant connect on database {database} to {role};
revoke all on all tables in schema console from {role};
grant usage on schema console to {role};
