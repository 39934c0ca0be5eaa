-- Workflows by number, to be changed. The rows are locked, in one order for all: of two steps that end at the same time
-- in two processes, the second waits here and then sees what the first did.
SELECT w.seq, w.id, w.tenant, w.kind, w.name, w.state, w.members, w.ended, w.succeeded, w.events, w.created_at, w.ended_at, w.queues
FROM workflows AS w
WHERE w.seq {in: seqs}
ORDER BY w.seq
{lock}
