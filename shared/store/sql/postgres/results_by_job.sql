-- Results of jobs. $1: seqs. Differs from SQLite: an array.
SELECT t.job_seq, t.result
FROM job_results AS t
WHERE t.job_seq = ANY($1)
