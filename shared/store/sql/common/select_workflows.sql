SELECT {columns of workflow}
FROM workflows AS w
--- select_workflows
-- Workflows of a tenant and in a state, newest first. $5 the workflow that they follow. NULL means all.
WHERE ($1 IS NULL OR w.tenant = $1) AND ($2 IS NULL OR w.state = $2)
  AND ($5 IS NULL OR w.seq < (SELECT p.seq FROM workflows AS p WHERE p.id = $5))
ORDER BY w.seq DESC
LIMIT $3 OFFSET $4
--- select_workflow_by_id
-- A workflow by its id, within a tenant when one is given.
WHERE w.id = $1 AND ($2 IS NULL OR w.tenant = $2)
--- lock_workflows
-- Workflows by number, to be changed. The rows are locked, in one order for all: of two steps that end at the same
-- time in two processes, the second waits here and then sees what the first did.
WHERE w.seq {in: seqs}
ORDER BY w.seq
{lock}
