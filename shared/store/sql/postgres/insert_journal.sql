-- Rows of the journal. Differs from SQLite: an array per column.
INSERT INTO journal (stream, last_event, last_message, events, messages, job_seq, turn, phase, phases, names,
                     tokens_in, tokens_out, tokens_cached, cost, model, paid_at, at, body, said)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
