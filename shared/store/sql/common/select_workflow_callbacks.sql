-- The steps that a batch enqueues when its members have ended.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, s.job
FROM workflow_steps AS s
WHERE s.workflow_seq = $1 AND s.role <> 'member' AND s.state = 'waiting'
ORDER BY s.step
