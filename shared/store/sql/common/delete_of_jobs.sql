-- Deletes the rows that belong to jobs, and then the jobs.
{each: tool_calls.job_seq, tool_retries.job_seq, branches.job_seq, stubs.job_seq, input_definitions.job_seq, elsewhere.job_seq,
       guardrail_checks.job_seq, memories.job_seq, delegations.job_seq, reviews.job_seq, job_results.job_seq,
       saved_states.job_seq, progress.job_seq, job_tags.job_seq, job_envelopes.job_seq, jobs.seq}
DELETE FROM {table} WHERE {key} {in: seqs}
