-- Deletes the journal of streams whose last job is gone. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM journal
WHERE stream IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = journal.stream)
