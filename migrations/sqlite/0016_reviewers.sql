-- Reviews that several persons answer: quorums, reminders, and who is asked next. Agents as reviewers stand in the inbox.

ALTER TABLE reviews ADD COLUMN plan TEXT;                            -- JSON: who is asked, step by step; NULL: the reviewer
ALTER TABLE reviews ADD COLUMN members TEXT NOT NULL DEFAULT '';     -- those who are asked now, each between line breaks
ALTER TABLE reviews ADD COLUMN step INTEGER NOT NULL DEFAULT 0 CHECK (step >= 0);
ALTER TABLE reviews ADD COLUMN votes TEXT;                           -- JSON: what they said so far
ALTER TABLE reviews ADD COLUMN remind_at INTEGER;
ALTER TABLE reviews ADD COLUMN reminders INTEGER NOT NULL DEFAULT 0 CHECK (reminders >= 0);
ALTER TABLE reviews ADD COLUMN asked TEXT;                           -- the engagement in which an agent is asked
CREATE INDEX reviews_asked ON reviews (asked) WHERE asked IS NOT NULL;
