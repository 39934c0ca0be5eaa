-- The newest commit that wrote events.
SELECT c.number, c.id AS commit_id FROM commits AS c ORDER BY c.number DESC LIMIT 1
