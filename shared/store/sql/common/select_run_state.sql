-- Up to where the run of engagement $1 was told.
SELECT r.told, r.marks FROM runs AS r JOIN engagements AS e ON e.seq = r.engagement_seq WHERE e.id = $1
