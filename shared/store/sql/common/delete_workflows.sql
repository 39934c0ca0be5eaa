-- Deletes workflows.
DELETE FROM workflows WHERE seq {in: seqs}
