-- The artifacts of engagement $1, in order: its own and those that it has of others, whose past it shares.
-- Whose call is no longer on record is withheld: nothing says then that it may be shown.
SELECT a.id, e.id AS engagement_id, j.id AS job_id, a.call_id, a.turn AS turn, a.name, a.media_type, a.digest, c.bytes, a.created_at AS created_at,
       coalesce((SELECT max(t.withheld) FROM tool_calls AS t WHERE t.call_id = a.call_id), 1) AS withheld, a.part AS part
FROM engagements AS e
JOIN artifacts AS a ON a.engagement_seq = e.seq
JOIN artifact_contents AS c ON c.tenant = a.tenant AND c.digest = a.digest
LEFT JOIN jobs AS j ON j.seq = a.job_seq
WHERE e.id = $1
UNION ALL
SELECT a.id, o.id AS engagement_id, j.id AS job_id, a.call_id, a.turn AS turn, a.name, a.media_type, a.digest, c.bytes, a.created_at AS created_at,
       coalesce((SELECT max(t.withheld) FROM tool_calls AS t WHERE t.call_id = a.call_id), 1) AS withheld, a.part AS part
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN artifacts AS a ON a.engagement_seq = i.source_seq AND a.turn < i.turn_until
JOIN engagements AS o ON o.seq = a.engagement_seq
JOIN artifact_contents AS c ON c.tenant = a.tenant AND c.digest = a.digest
LEFT JOIN jobs AS j ON j.seq = a.job_seq
WHERE e.id = $1
ORDER BY turn, created_at, call_id, part
