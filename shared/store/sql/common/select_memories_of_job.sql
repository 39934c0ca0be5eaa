-- Questions and answers of the newest $3 jobs that the agent of job $1 remembers of its user, under the rules $2; the oldest of
-- them first: of each the row with the first message of the turn that took its input (part 1), and the one with the last message of
-- the turn that answered (part 2). Nothing for a delegate, a fork or a branch: those begin with their own input.
WITH newest AS (
    SELECT k.job_seq, k.engagement_seq, k.began, k.ended, k.completed_at
    FROM jobs AS j
    JOIN engagements AS e ON e.seq = j.engagement_seq
    JOIN memories AS k
      ON k.tenant = COALESCE(j.tenant, '') AND k.agent_name = e.agent_name AND k.user_id = e.user_id AND k.rules = $2
    WHERE j.id = $1
      AND e.depth = 0
      AND NOT EXISTS (SELECT 1 FROM forks AS f WHERE f.engagement_seq = e.seq)
      AND NOT EXISTS (SELECT 1 FROM branches AS b WHERE b.job_seq = e.seq)
    ORDER BY k.completed_at DESC, k.job_seq DESC
    LIMIT $3),
picked AS (
    SELECT r.job_seq, 1 AS part,
           (SELECT min(f.last_message) FROM journal AS f
            WHERE f.stream = r.engagement_seq AND f.job_seq = r.job_seq AND f.turn = r.began AND f.messages > 0) AS last_message
    FROM newest AS r
    UNION ALL
    SELECT r.job_seq, 2 AS part,
           (SELECT max(l.last_message) FROM journal AS l
            WHERE l.stream = r.engagement_seq AND l.job_seq = r.job_seq AND l.turn = r.ended AND l.messages > 0) AS last_message
    FROM newest AS r)
SELECT r.job_seq, r.began, r.ended, o.id AS engagement_id, CAST(p.part AS BIGINT) AS part, {columns of messages}
FROM newest AS r
JOIN engagements AS o ON o.seq = r.engagement_seq
JOIN picked AS p ON p.job_seq = r.job_seq
JOIN journal AS v ON v.stream = r.engagement_seq AND v.last_message = p.last_message AND v.messages > 0
ORDER BY r.completed_at, r.job_seq, p.part
