-- Where the engagement of a job was forked from; no row for one that is no fork.
SELECT f.engagement_seq, f.parent_id, f.at_turn, f.phase, f.live_tools, f.changes
FROM forks AS f
JOIN jobs AS j ON j.engagement_seq = f.engagement_seq
WHERE j.id = $1
