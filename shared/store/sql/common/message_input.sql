-- The first message that a job brought into its engagement, or the first one of the engagement that it was forked from.
-- What is recalled of other engagements (turn 0) is no input.
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM messages AS m
JOIN jobs AS j ON j.seq = m.job_seq AND j.engagement_seq = m.engagement_seq
WHERE j.id = $1
  AND m.seq = (SELECT min(f.seq) FROM messages AS f WHERE f.engagement_seq = j.engagement_seq AND f.job_seq = j.seq AND f.turn > 0)
UNION ALL
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN messages AS m ON m.engagement_seq = i.source_seq AND m.seq <= i.message_until
WHERE j.id = $1 AND j.seq = j.engagement_seq
  AND m.seq = (SELECT min(f.seq) FROM messages AS f WHERE f.engagement_seq = i.source_seq AND f.turn > 0)
ORDER BY seq
LIMIT 1
