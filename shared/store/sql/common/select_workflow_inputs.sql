-- The inputs of workflows' steps beside what their clients sent.
SELECT v.job_seq, w.id, v.parent_results
FROM jobs AS j
JOIN workflows AS w ON w.seq = j.workflow_seq
JOIN job_envelopes AS v ON v.job_seq = j.seq
WHERE j.seq {in: seqs}
