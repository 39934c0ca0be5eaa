-- The rows of a job, whole, as they are stored. $1 id.
{each: jobs.seq, job_envelopes.job_seq, job_results.job_seq, job_errors.job_seq, saved_states.job_seq, progress.job_seq, tool_calls.job_seq, reviews.job_seq, guardrail_checks.job_seq, delegations.job_seq}
SELECT r.* FROM {table} AS r
WHERE r.{key} = (SELECT j.seq FROM jobs AS j WHERE j.id = $1)
