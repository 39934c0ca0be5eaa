-- Where steps stand.
UPDATE workflow_steps SET state = r.state
FROM {rows: workflow_seq, step, state}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
