-- No other transaction may compare or insert jobs that are alike in one of the keys $1, which are in one order for all.
-- Differs from SQLite: other transactions write at the same time. The locks end with the transaction (no session state),
-- and it is a statement of its own, because what was committed while it waited is seen only by the next one.
SELECT pg_advisory_xact_lock(hashtextextended(r.unique_key, 0)) FROM unnest($1) AS r (unique_key)
