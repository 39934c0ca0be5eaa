-- Deletes the rows that belong to a stream whose last job is gone: an engagement, or a plain job.
{each: forks.engagement_seq, inheritances.engagement_seq, artifacts.engagement_seq, run_events.engagement_seq,
       run_requests.engagement_seq, runs.engagement_seq, state_scopes.engagement_seq, engagements.seq}
DELETE FROM {table}
WHERE {key} {in: seqs}
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = {table}.{key})
