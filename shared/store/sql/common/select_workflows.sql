SELECT {columns of workflow}
FROM workflows AS w
--- select_workflows
-- Workflows of a tenant and in a state, newest first. $5 the workflow that they follow. NULL means all.
WHERE ($1 IS NULL OR w.tenant = $1) AND ($2 IS NULL OR w.state = $2)
  AND ($5 IS NULL OR w.seq < (SELECT p.seq FROM workflows AS p
                                WHERE p.id IN ($5, $5 || '~' || $1) AND ($1 IS NULL OR p.tenant = $1)))
ORDER BY w.seq DESC
LIMIT $3 OFFSET $4
--- select_workflow_by_id
-- A workflow by its id, within a tenant when one is given; a client of the tenant may have chosen the id.
WHERE w.id IN ($1, $1 || '~' || $2) AND ($2 IS NULL OR w.tenant = $2)
--- select_workflows_of_any_tenant
-- The workflows whose id is $1 without the tenant for which a client chose it.
WHERE w.id = $1 OR (substr(w.id, 1, 36) = $1 AND substr(w.id, 37, 1) = '~')
ORDER BY w.seq
--- lock_workflows
-- Workflows by number, to be changed. The rows are locked, in one order for all: of two steps that end at the same
-- time in two processes, the second waits here and then sees what the first did.
WHERE w.seq {in: seqs}
ORDER BY w.seq
{lock}
