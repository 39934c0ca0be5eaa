-- Where the next $4 rows with events after ($1, $2, $3) end, and how many they are.
-- Differs from SQLite: transactions commit in another order than they begin. Those below the oldest that is still under
-- way have all ended: behind a reader that stays among them nothing new can appear.
SELECT w.tx, w.stream, w.seq, count(*) OVER () AS rows_found
FROM (SELECT v.tx, v.stream, v.last_event AS seq
      FROM journal AS v
      WHERE v.events > 0 AND v.tx >= $1 AND (v.tx, v.stream, v.last_event) > ($1, $2, $3)
        AND v.tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      ORDER BY v.tx, v.stream, v.last_event
      LIMIT $4) AS w
ORDER BY w.tx DESC, w.stream DESC, w.seq DESC
LIMIT 1
