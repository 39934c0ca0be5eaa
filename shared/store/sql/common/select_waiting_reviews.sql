-- How many questions a job waits for.
SELECT count(*) AS reviews FROM reviews WHERE job_seq = $1 AND state = 'open'
