-- Steps wait for so many others less.
UPDATE workflow_steps SET waits = waits - r.met
FROM {rows: workflow_seq, step, met}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
