-- The job that $2 names among those that come from the job $1: by the branch's id or name, or by the id of a job; the
-- root itself also by the id of its engagement.
SELECT j.id
FROM branches AS b
JOIN jobs AS j ON j.seq = b.job_seq
WHERE b.root_seq = $1 AND (b.id = $2 OR b.name = $2 OR j.id IN ($2, $2 || '~' || j.tenant))
UNION ALL
SELECT j.id
FROM jobs AS j
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.seq = $1 AND (j.id IN ($2, $2 || '~' || j.tenant) OR e.id = $2)
