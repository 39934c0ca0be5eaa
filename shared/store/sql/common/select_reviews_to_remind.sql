-- Open reviews that are to be reminded of, by id. They are read again once their jobs are held.
SELECT v.id
FROM reviews AS v
WHERE v.state = 'open' AND v.remind_at <= $1
ORDER BY v.remind_at, v.seq
LIMIT $2
