-- Deletes those of the commits after number $1 and up to $2 whose events are all deleted. The newest commit stays: the numbers
-- continue from it, and so do readers that have read everything.
DELETE FROM commits
WHERE number > $1 AND number <= $2 AND number < (SELECT max(n.number) FROM commits AS n)
  AND NOT EXISTS (SELECT 1 FROM journal AS v WHERE v.commit_id = commits.id AND v.events > 0)
