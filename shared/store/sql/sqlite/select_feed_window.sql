-- Where the next $4 rows with events after ($1, $2, $3) end, and how many they are.
-- Differs from PostgreSQL: one writer commits at a time, so the order of the numbers is the order of the commits.
SELECT w.tx, w.stream, w.seq, count(*) OVER () AS rows_found
FROM (SELECT v.tx, v.stream, v.last_event AS seq
      FROM journal AS v
      WHERE v.events > 0 AND v.tx >= $1 AND (v.tx, v.stream, v.last_event) > ($1, $2, $3)
      ORDER BY v.tx, v.stream, v.last_event
      LIMIT $4) AS w
ORDER BY w.tx DESC, w.stream DESC, w.seq DESC
LIMIT 1
