-- Makes the queues known that everybody knows.
INSERT INTO queues (name) VALUES ('default'), ('ai-agents') ON CONFLICT (name) DO NOTHING
