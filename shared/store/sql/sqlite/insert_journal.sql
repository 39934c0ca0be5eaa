-- Rows of the journal. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO journal (stream, last_event, last_message, events, messages, job_seq, turn, phase, phases, names,
                     tokens_in, tokens_out, tokens_cached, cost, model, paid_at, at, body, said)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11, r.value ->> 12, r.value ->> 13,
       r.value ->> 14, r.value ->> 15, r.value ->> 16, r.value ->> 17, r.value ->> 18
FROM json_each($1) AS r
