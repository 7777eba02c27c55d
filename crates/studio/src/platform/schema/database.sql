-- Gives the statement that creates a database.
-- Relies on no index; the name is quoted by the server.
select format('create database %I', $1::text)
