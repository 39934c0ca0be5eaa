-- Jobs that work for these and have not ended.
SELECT j.id
FROM delegations AS d
JOIN jobs AS j ON j.seq = d.job_seq
WHERE d.parent_seq {in: seqs} AND d.state = 'open' AND j.ended_at IS NULL
