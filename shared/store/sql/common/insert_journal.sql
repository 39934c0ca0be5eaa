-- Rows of the journal.
INSERT INTO journal {values: stream, last_event, last_message, events, messages, job_seq, turn, phase, phases, names,
                             tokens_in, tokens_out, tokens_cached, cost, model, paid_at, at, body, said}
