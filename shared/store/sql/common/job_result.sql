-- A job's result.
SELECT result FROM job_results WHERE job_seq = $1
