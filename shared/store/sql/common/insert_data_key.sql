-- A new data key; another process may have taken the number.
INSERT INTO data_keys (seq, body) VALUES ($1, $2)
ON CONFLICT (seq) DO NOTHING
