-- New artifacts. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO artifacts (id, engagement_seq, job_seq, call_id, turn, part, tenant, digest, name, media_type, created_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10
FROM json_each($1) AS r
