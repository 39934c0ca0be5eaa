-- Open reviews whose deadline has passed, by id; those that an agent answers end with its engagement. They are
-- read again once their jobs are held.
SELECT v.id
FROM reviews AS v
WHERE v.state = 'open' AND v.asked IS NULL AND v.deadline_at <= $1
ORDER BY v.seq
LIMIT $2
