-- Those of these engagements that have a job which has not ended. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT DISTINCT j.engagement_seq
FROM json_each($1) AS r
JOIN jobs AS j ON j.engagement_seq = r.value ->> 0
WHERE j.ended_at IS NULL
