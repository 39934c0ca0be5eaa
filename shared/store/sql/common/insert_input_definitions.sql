-- The agents of inputs, and how long the conversation is kept; the first one of an engagement may have its own already.
INSERT INTO input_definitions {values: job_seq, digest, retention_ms}
ON CONFLICT (job_seq) DO NOTHING
