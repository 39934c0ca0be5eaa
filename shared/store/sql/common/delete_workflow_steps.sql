-- Deletes the steps of workflows.
DELETE FROM workflow_steps WHERE workflow_seq {in: workflow_seqs}
