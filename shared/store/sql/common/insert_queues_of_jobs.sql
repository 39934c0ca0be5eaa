-- Creates the queues that every fleet has.
INSERT INTO queues (name) VALUES ('default'), ('ai-agents') ON CONFLICT (name) DO NOTHING
