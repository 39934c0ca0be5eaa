-- Where the next $4 rows with events after ($1, $2, $3) end, and how many they are.
-- Differs from PostgreSQL: how the commits are read in their order, and no further than needed.
SELECT w.number, w.commit_id, w.stream, w.seq, count(*) OVER () AS rows_found
FROM (SELECT c.number, c.id AS commit_id, v.stream, v.last_event AS seq
      FROM commits AS c
      CROSS JOIN journal AS v ON v.commit_id = c.number AND v.events > 0
      WHERE c.number >= $1 AND (c.number, v.stream, v.last_event) > ($1, $2, $3)
      ORDER BY c.number, v.stream, v.last_event
      LIMIT $4) AS w
ORDER BY w.number DESC, w.stream DESC, w.seq DESC
LIMIT 1
