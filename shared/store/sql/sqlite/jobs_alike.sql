-- Jobs that are alike, in a state and accepted after a time: $1: JSON [[key, state, after], …]. Of those that have ended
-- the newest of each state is enough. Differs from PostgreSQL: json_each.
SELECT j.unique_key, j.id, j.state, j.created_at, j.run_at
FROM json_each($1) AS r
JOIN jobs AS j ON j.unique_key = r.value ->> 0 AND j.state = r.value ->> 1 AND j.created_at > r.value ->> 2
WHERE r.value ->> 1 NOT IN ('completed', 'cancelled', 'discarded')
UNION ALL
SELECT j.unique_key, j.id, j.state, j.created_at, j.run_at
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = (SELECT o.seq FROM jobs AS o
                           WHERE o.unique_key = r.value ->> 0 AND o.state = r.value ->> 1 AND o.created_at > r.value ->> 2
                           ORDER BY o.created_at DESC LIMIT 1)
WHERE r.value ->> 1 IN ('completed', 'cancelled', 'discarded')
