-- Where the next $4 events after ($1, $2, $3) end, and how many they are.
-- Differs from PostgreSQL: one writer commits at a time, so the order of the numbers is the order of the commits.
SELECT w.tx, w.stream, w.seq, count(*) OVER () AS events
FROM (SELECT v.tx, v.stream, v.seq
      FROM events AS v
      WHERE v.tx >= $1 AND (v.tx, v.stream, v.seq) > ($1, $2, $3)
      ORDER BY v.tx, v.stream, v.seq
      LIMIT $4) AS w
ORDER BY w.tx DESC, w.stream DESC, w.seq DESC
LIMIT 1
