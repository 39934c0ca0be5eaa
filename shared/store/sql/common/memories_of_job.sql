-- What was asked and answered in the newest $3 jobs that the agent of job $1 remembers of its user, under the rules $2; the oldest of
-- them first: of each the first message of the turn that took its input, and the last of the turn that answered. Nothing for a
-- delegate, a fork or a branch: those begin with what they were given.
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
    SELECT r.job_seq,
           (SELECT min(f.seq) FROM messages AS f
            WHERE f.engagement_seq = r.engagement_seq AND f.job_seq = r.job_seq AND f.turn = r.began) AS seq
    FROM newest AS r
    UNION
    SELECT r.job_seq,
           (SELECT max(l.seq) FROM messages AS l
            WHERE l.engagement_seq = r.engagement_seq AND l.job_seq = r.job_seq AND l.turn = r.ended) AS seq
    FROM newest AS r)
SELECT r.job_seq, r.began, r.ended, o.id AS engagement_id, m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM newest AS r
JOIN engagements AS o ON o.seq = r.engagement_seq
JOIN picked AS p ON p.job_seq = r.job_seq
JOIN messages AS m ON m.engagement_seq = r.engagement_seq AND m.seq = p.seq
ORDER BY r.completed_at, r.job_seq, m.seq
