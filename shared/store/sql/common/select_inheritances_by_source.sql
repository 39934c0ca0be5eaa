-- Which engagements others read.
SELECT DISTINCT i.source_seq FROM inheritances AS i WHERE i.source_seq {in: source_seqs}
