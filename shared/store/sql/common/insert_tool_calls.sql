-- New rows of the tool journal.
INSERT INTO tool_calls {values: call_id, job_seq, engagement_seq, turn, position, name, input, idempotent, state,
                                sends, created_at, started_at}
