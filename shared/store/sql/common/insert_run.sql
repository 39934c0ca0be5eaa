-- Moves the run of engagement $1 from number $2 to $3, with the marks $4; nothing when a concurrent reader has moved it.
INSERT INTO runs (engagement_seq, told, marks)
SELECT e.seq, $3, $4 FROM engagements AS e WHERE e.id = $1
ON CONFLICT (engagement_seq) DO UPDATE
SET told = excluded.told, marks = excluded.marks
WHERE runs.told = $2
