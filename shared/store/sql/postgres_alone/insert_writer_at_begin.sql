-- Leaves the name of a transaction with its writer's, as it begins: see update_writer.sql. :commit and :writer are UUIDs.
INSERT INTO writers (name, last_commit) VALUES (':writer', ':commit') ON CONFLICT (name) DO UPDATE SET last_commit = excluded.last_commit
