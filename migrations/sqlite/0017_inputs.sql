-- Further inputs of an engagement.

-- How many jobs ever carried an input into it. One with a single input is looked at no further when its job ends.
ALTER TABLE engagements ADD COLUMN inputs INTEGER NOT NULL DEFAULT 1;
