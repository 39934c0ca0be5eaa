-- The last committed transaction of writer $1. The lock waits for one that is still being committed.
SELECT last_commit FROM writers WHERE name = $1 FOR UPDATE
