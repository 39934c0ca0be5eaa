UPDATE workflow_steps
--- update_workflow_steps
-- Where steps stand.
SET state = r.state
FROM {rows: workflow_seq, step, state}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
--- update_met_workflow_steps
-- Steps wait for so many others less.
SET waits = waits - r.met
FROM {rows: workflow_seq, step, met}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
--- update_skipped_workflow_steps
-- What still waits when a workflow ends never starts.
SET state = 'skipped' WHERE workflow_seq = $1 AND state = 'waiting'
