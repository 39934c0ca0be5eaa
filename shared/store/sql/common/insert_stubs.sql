-- Calls that others stand for.
INSERT INTO stubs {values: job_seq, call_id, of_call}
