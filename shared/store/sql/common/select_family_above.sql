-- The parent of the engagement of job $1, and its own depth.
SELECT e.depth, p.id AS parent_id, o.id AS parent_engagement_id
FROM jobs AS j
JOIN engagements AS e ON e.seq = j.engagement_seq
LEFT JOIN jobs AS p ON p.seq = e.parent_seq
LEFT JOIN engagements AS o ON o.seq = p.engagement_seq
WHERE j.id = $1
