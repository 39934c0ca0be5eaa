-- Deletes what was configured for runs whose last job is gone.
DELETE FROM run_settings
WHERE run IN (SELECT e.id FROM engagements AS e
              WHERE e.seq {in: seqs}
                AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = e.seq))
