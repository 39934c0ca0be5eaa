-- Steps wait for so many others less. $1: workflow_seqs, $2: steps, $3: how many. Differs from SQLite: an array per column.
UPDATE workflow_steps SET waits = waits - r.met
FROM unnest($1, $2, $3) AS r (workflow_seq, step, met)
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
