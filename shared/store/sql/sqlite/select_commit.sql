-- The place of commit $1 in the order of events. Differs from PostgreSQL: the id is the number.
SELECT c.number FROM commits AS c WHERE c.number = $1
