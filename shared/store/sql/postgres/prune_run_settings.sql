-- Deletes what was configured for runs whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM run_settings
WHERE run IN (SELECT e.id FROM engagements AS e
              WHERE e.seq = ANY($1)
                AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = e.seq))
