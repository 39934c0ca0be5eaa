-- The rows with events of jobs with the id $1 after ($2, $3, $4), oldest first, with these names ($5, commas between), if they are tenant $6's (NULL:
-- any tenant's). Differs from PostgreSQL: lists of words; the id of a commit is its number.
SELECT c.number, v.commit_id, v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body, j.id AS job_id, j.job_type, j.queue, e.id AS engagement_id, e.agent_name, j.tenant
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq AND v.events > 0
JOIN commits AS c ON c.number = v.commit_id
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.seq IN (SELECT a.seq FROM jobs AS a WHERE a.id = $1
                UNION ALL
                SELECT b.seq FROM jobs AS b WHERE substr(b.id, 1, 36) = $1 AND substr(b.id, 37, 1) = '~')
  AND (c.number, v.stream, v.last_event) > ($2, $3, $4)
  AND EXISTS (SELECT 1 FROM json_each('["' || replace($5, ',', '","') || '"]') AS n
              WHERE instr(',' || v.names || ',', ',' || n.value || ',') > 0)
  AND ($6 IS NULL OR j.tenant = $6)
ORDER BY c.number, v.stream, v.last_event
LIMIT $7
