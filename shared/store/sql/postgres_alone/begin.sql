-- Begins a transaction and names it, in one round trip: its outcome can be looked up if the connection breaks.
BEGIN; SELECT CAST(pg_current_xact_id() AS TEXT) AS xid
