-- What became of transaction $1: committed, aborted or in progress; NULL when it is too old to be known.
SELECT pg_xact_status(CAST($1 AS xid8)) AS outcome
