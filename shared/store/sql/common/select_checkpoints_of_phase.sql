-- The rows of the journal with the checkpoints of one phase of an engagement, newest first: its own and those that it reads of
-- others.
SELECT {columns of checkpoints}, j.id AS job_id
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN journal AS v ON v.stream = e.seq AND v.job_seq = j.seq
WHERE e.id = $1 AND v.phase <= $2 AND v.phase + v.phases > $2
UNION ALL
SELECT {columns of checkpoints}, j.id AS job_id
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN jobs AS j ON j.seq = i.source_seq
JOIN journal AS v ON v.stream = i.source_seq AND v.job_seq = i.source_seq AND v.turn < i.turn_until
WHERE e.id = $1 AND v.phase <= $2 AND v.phase + v.phases > $2
ORDER BY turn DESC
LIMIT $3
