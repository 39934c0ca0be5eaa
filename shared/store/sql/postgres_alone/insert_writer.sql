-- Makes the row of writer $1 for statements that are transactions of their own; $2 is a name that no transaction has.
INSERT INTO writers (name, last_commit) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
