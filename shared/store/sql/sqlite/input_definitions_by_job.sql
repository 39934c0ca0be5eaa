-- The agents of jobs whose engagements have several inputs. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT d.job_seq, d.digest FROM json_each($1) AS r JOIN input_definitions AS d ON d.job_seq = r.value ->> 0
