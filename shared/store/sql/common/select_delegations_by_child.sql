-- For whom these jobs work.
SELECT d.job_seq, d.parent_seq, p.id AS parent_id, d.call_id, d.turn, d.agent, d.state, d.started_at, d.deadline_at,
       j.tokens_used, e.id AS engagement_id
FROM delegations AS d
JOIN jobs AS p ON p.seq = d.parent_seq
JOIN jobs AS j ON j.seq = d.job_seq
JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE d.job_seq {in: seqs}
