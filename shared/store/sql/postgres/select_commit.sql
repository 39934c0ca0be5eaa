-- The place of commit $1 in the order of events. Differs from SQLite: the number is not the id.
SELECT c.number FROM commits AS c WHERE c.id = $1
