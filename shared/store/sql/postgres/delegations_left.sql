-- Jobs that work for these and have not ended. $1: parent_seqs. Differs from SQLite: an array.
SELECT j.id
FROM delegations AS d
JOIN jobs AS j ON j.seq = d.job_seq
WHERE d.parent_seq = ANY($1) AND d.state = 'open' AND j.ended_at IS NULL
