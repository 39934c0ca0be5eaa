-- Jobs that are alike, in a state and accepted after a time. Of those that have ended the newest of each state is
-- enough.
SELECT j.unique_key, j.id, j.state, j.created_at, j.run_at
FROM {rows: unique_key, state, after}
JOIN jobs AS j ON j.unique_key = r.unique_key AND j.state = r.state AND j.created_at > r.after
WHERE r.state NOT IN ('completed', 'cancelled', 'discarded')
UNION ALL
SELECT j.unique_key, j.id, j.state, j.created_at, j.run_at
FROM {rows: unique_key, state, after}
JOIN jobs AS j ON j.seq = (SELECT o.seq FROM jobs AS o
                           WHERE o.unique_key = r.unique_key AND o.state = r.state AND o.created_at > r.after
                           ORDER BY o.created_at DESC LIMIT 1)
WHERE r.state IN ('completed', 'cancelled', 'discarded')
