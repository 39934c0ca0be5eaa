-- The same as migrations/sqlite/0017_inputs.sql.
--
-- Further inputs of an engagement.

-- How many jobs ever carried an input into it. One with a single input is looked at no further when its job ends.
ALTER TABLE engagements ADD COLUMN inputs BIGINT NOT NULL DEFAULT 1;
