-- Takes all queues out of a pool.
UPDATE queues SET pool = NULL, weight = 1, pass = 0, claims = 0 WHERE pool = $1
