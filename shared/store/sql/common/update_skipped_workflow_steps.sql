-- What still waits when a workflow ends never starts.
UPDATE workflow_steps SET state = 'skipped' WHERE workflow_seq = $1 AND state = 'waiting'
