-- Steps of a new workflow.
INSERT INTO workflow_steps {values: workflow_seq, step, name, role, needs, next, waits, state, job_id, job_type, job}
