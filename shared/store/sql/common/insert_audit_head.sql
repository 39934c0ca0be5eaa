-- Begins the audit, unless it has begun.
INSERT INTO audit_heads (id, seq, hash) VALUES (1, 0, '') ON CONFLICT (id) DO NOTHING
