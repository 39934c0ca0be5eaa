-- Which engagements others read. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT DISTINCT i.source_seq FROM inheritances AS i WHERE i.source_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
