-- Artifact $1, without what is in it. $2 its tenant; NULL means every one.
-- Whose call is no longer on record is withheld: nothing says then that it may be shown.
SELECT a.id, e.id AS engagement_id, j.id AS job_id, a.call_id, a.turn AS turn, a.name, a.media_type, a.digest, c.bytes, a.created_at AS created_at,
       coalesce((SELECT max(t.withheld) FROM tool_calls AS t WHERE t.call_id = a.call_id), 1) AS withheld, a.part
FROM artifacts AS a
JOIN engagements AS e ON e.seq = a.engagement_seq
JOIN artifact_contents AS c ON c.tenant = a.tenant AND c.digest = a.digest
LEFT JOIN jobs AS j ON j.seq = a.job_seq
WHERE a.id = $1 AND ($2 IS NULL OR a.tenant = $2)
