-- Where steps stand. $1: workflow_seqs, $2: steps, $3: states. Differs from SQLite: an array per column.
UPDATE workflow_steps SET state = r.state
FROM unnest($1, $2, $3) AS r (workflow_seq, step, state)
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
