-- The place of commit $1 in the order of events.
SELECT c.number FROM commits AS c WHERE c.id = $1
