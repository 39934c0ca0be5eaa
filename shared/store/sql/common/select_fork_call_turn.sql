-- The turn of a settled call, when engagement $1 made it or reads it of another one.
SELECT t.turn
FROM tool_calls AS t
WHERE t.call_id = $2 AND t.state = 'settled'
  AND (t.engagement_seq = $1 OR EXISTS (
      SELECT 1 FROM inheritances AS i
      WHERE i.engagement_seq = $1 AND i.source_seq = t.engagement_seq AND t.turn < i.turn_until))
