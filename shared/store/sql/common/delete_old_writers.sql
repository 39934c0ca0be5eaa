-- Forgets writers whose last commit is older than $1, which is a UUIDv7.
DELETE FROM writers WHERE last_commit < $1
