-- Which engagements others read. $1: seqs. Differs from SQLite: an array.
SELECT DISTINCT i.source_seq FROM inheritances AS i WHERE i.source_seq = ANY($1)
