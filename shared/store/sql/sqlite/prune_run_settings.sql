-- Deletes what was configured for runs whose last job is gone. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM run_settings
WHERE run IN (SELECT e.id FROM engagements AS e
              WHERE e.seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
                AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = e.seq))
