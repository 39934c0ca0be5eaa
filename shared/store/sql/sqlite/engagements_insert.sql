-- New engagements. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO engagements (seq, id, agent_name, digest, user_id, user_email, started_at, budget_seq, depth, parent_seq, limited_by,
                         retention_ms)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11
FROM json_each($1) AS r
