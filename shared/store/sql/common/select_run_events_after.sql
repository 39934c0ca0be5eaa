-- A page of events of the run of engagement $1 after number $2, oldest first: at most $4 of them, and no further one when those
-- before it have $5 characters. $3 only those of this request; NULL means all, also those of requests that are pruned
-- already. `found` counts what there was before the characters were looked at.
SELECT p.run_id, p.id, p.request, p.body, p.found
FROM (
    SELECT q.run_id, q.id, q.request, q.body, COUNT(*) OVER () AS found,
           SUM(LENGTH(q.body)) OVER (ORDER BY q.id) - LENGTH(q.body) AS ahead
    FROM (
        SELECT e.id AS run_id, v.id, j.id AS request, v.body
        FROM engagements AS e
        JOIN run_events AS v ON v.engagement_seq = e.seq
        LEFT JOIN jobs AS j ON j.seq = v.job_seq
        WHERE e.id = $1 AND v.id > $2 AND ($3 IS NULL OR j.id = $3)
        ORDER BY v.id
        LIMIT $4
    ) AS q
) AS p
WHERE p.ahead < $5
ORDER BY p.id
