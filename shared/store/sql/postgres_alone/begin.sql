-- Begins a transaction and names it, in one round trip: its outcome can be looked up if the connection breaks.
-- A process that falls silent in its middle (paused, cut off) must not keep rows locked: the database ends it soon.
BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'; SELECT CAST(pg_current_xact_id() AS TEXT) AS xid
