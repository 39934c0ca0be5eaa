UPDATE workflow_steps
--- update_workflow_steps
-- The states of steps.
SET state = r.state
FROM {rows: workflow_seq, step, state}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
--- update_met_workflow_steps
-- Reduces the numbers of steps that these steps wait for.
SET waits = waits - r.met
FROM {rows: workflow_seq, step, met}
WHERE workflow_steps.workflow_seq = r.workflow_seq AND workflow_steps.step = r.step
--- update_skipped_workflow_steps
-- Steps that still wait when a workflow ends never start.
SET state = 'skipped' WHERE workflow_seq = $1 AND state = 'waiting'
