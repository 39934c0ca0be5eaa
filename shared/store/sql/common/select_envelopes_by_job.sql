-- The jobs as their clients sent them.
SELECT v.job_seq, v.retry, v.args, v.meta, v.options, v.extra, v.parent_results
FROM job_envelopes AS v
WHERE v.job_seq {in: seqs}
