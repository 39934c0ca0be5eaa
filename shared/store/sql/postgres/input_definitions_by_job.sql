-- The agents of jobs whose engagements have several inputs. $1: seqs. Differs from SQLite: an array.
SELECT d.job_seq, d.digest FROM input_definitions AS d WHERE d.job_seq = ANY($1)
