-- Sets jobs aside whose limit is used up.
UPDATE jobs SET set_aside = 1 FROM {rows: seq} WHERE jobs.seq = r.seq
