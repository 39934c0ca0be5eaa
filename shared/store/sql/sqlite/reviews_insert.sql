-- Reviews. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO reviews (id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, state,
                     created_at, deadline_at, plan, members, remind_at, asked)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, 'open', r.value ->> 9, r.value ->> 10, r.value ->> 11, r.value ->> 12, r.value ->> 13,
       r.value ->> 14
FROM json_each($1) AS r
