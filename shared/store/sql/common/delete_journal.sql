-- Deletes the journal of streams whose last job is gone.
DELETE FROM journal
WHERE stream {in: streams}
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = journal.stream)
