-- The decisions that still count about calls of the engagements that a job's engagement was forked from, oldest first.
SELECT v.id, v.call_id, v.kind, v.arguments_hash, v.state, v.decided_by, v.reason
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN reviews AS v ON v.engagement_seq = i.source_seq
WHERE j.id = $1 AND v.state <> 'open' AND v.spent = 0
ORDER BY v.seq
