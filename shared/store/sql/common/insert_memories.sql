-- Remembers exchanges of jobs that complete, but for those of delegates, forks and branches. Rows: job, the turns that
-- took the input and that answered, the rules, when.
INSERT INTO memories (job_seq, engagement_seq, tenant, agent_name, user_id, rules, began, ended, completed_at)
SELECT j.seq, e.seq, COALESCE(j.tenant, ''), e.agent_name, e.user_id, r.rules, r.began, r.ended, r.at
FROM {rows: seq, began, ended, rules, at}
JOIN jobs AS j ON j.seq = r.seq
JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE e.depth = 0
  AND NOT EXISTS (SELECT 1 FROM forks AS f WHERE f.engagement_seq = e.seq)
  AND NOT EXISTS (SELECT 1 FROM branches AS b WHERE b.job_seq = e.seq)
ON CONFLICT (job_seq) DO NOTHING
