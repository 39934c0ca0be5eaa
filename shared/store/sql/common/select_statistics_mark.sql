-- How far the statistics have come, and when the next job ended that they do not count yet.
SELECT m.ended_at, (SELECT min(j.ended_at) FROM jobs AS j WHERE j.ended_at >= m.ended_at) AS first_ended_at
FROM statistics_mark AS m
