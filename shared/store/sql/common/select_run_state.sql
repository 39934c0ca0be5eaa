-- The number up to which the run of engagement $1 is numbered.
SELECT r.told, r.marks FROM runs AS r JOIN engagements AS e ON e.seq = r.engagement_seq WHERE e.id = $1
