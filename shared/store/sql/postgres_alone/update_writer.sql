-- Leaves the name of a transaction ($2) with its writer's ($1), which is there since its connection was made. If the connection
-- breaks during the commit, the row shows whether the transaction was committed. (Its number would not: after a crash
-- PostgreSQL may give the number of a lost transaction to another one.)
UPDATE writers SET last_commit = $2 WHERE name = $1
