-- New rows of the tool journal. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO tool_calls (call_id, job_seq, engagement_seq, turn, position, name, input, idempotent, state, sends,
                        created_at, started_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11
FROM json_each($1) AS r
