-- Events of an engagement after a position, oldest first.
SELECT v.stream, v.seq, v.name, j.id AS job_id, e.id AS engagement_id, v.turn, v.data, v.at
FROM engagements AS e
JOIN jobs AS f ON f.engagement_seq = e.seq AND f.seq = f.stream
JOIN events AS v ON v.stream = f.seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE e.id = $1 AND v.seq > $2
ORDER BY v.seq
LIMIT $3
