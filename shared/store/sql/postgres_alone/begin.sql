-- Begins a transaction and leaves its name with its writer's, in one round trip: :commit and :writer are UUIDs. If the
-- connection breaks during the commit, the row tells whether the transaction was committed. (Its number would not: after a
-- crash PostgreSQL may give the number of a lost transaction to another one.)
-- A process that falls silent in its middle (paused, cut off) must not keep rows locked: the database ends it soon.
-- Statements are joined from many parts; planning one anew for each commit would cost more than running it.
BEGIN; SET LOCAL plan_cache_mode = 'force_generic_plan'; SET LOCAL enable_seqscan = off; SET LOCAL idle_in_transaction_session_timeout = '5s'; INSERT INTO writers (name, last_commit) VALUES (':writer', ':commit') ON CONFLICT (name) DO UPDATE SET last_commit = excluded.last_commit
