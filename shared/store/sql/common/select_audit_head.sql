SELECT h.seq, h.hash FROM audit_heads AS h
--- select_audit_head
-- The end of the audit.
WHERE h.id = 1
--- lock_audit_head
-- The end of the audit, locked: entries are appended one transaction at a time.
WHERE h.id = 1
{lock}
