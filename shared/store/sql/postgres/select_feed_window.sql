-- Where the next $4 rows with events after ($1, $2, $3) end, and how many they are.
-- Differs from SQLite: how the commits are read in their order, and no further than needed.
SELECT w.number, w.commit_id, w.stream, w.seq, count(*) OVER () AS rows_found
FROM (SELECT c.number, c.id AS commit_id, v.stream, v.last_event AS seq
      FROM (SELECT n.id, n.number FROM commits AS n WHERE n.number >= $1 ORDER BY n.number OFFSET 0) AS c
      CROSS JOIN LATERAL (SELECT n.stream, n.last_event FROM journal AS n WHERE n.commit_id = c.id AND n.events > 0 OFFSET 0) AS v
      WHERE (c.number, v.stream, v.last_event) > ($1, $2, $3)
      ORDER BY c.number, v.stream, v.last_event
      LIMIT $4) AS w
ORDER BY w.number DESC, w.stream DESC, w.seq DESC
LIMIT 1
