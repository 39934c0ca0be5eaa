-- Deletes the steps of workflows. $1: seqs. Differs from SQLite: an array.
DELETE FROM workflow_steps WHERE workflow_seq = ANY($1)
