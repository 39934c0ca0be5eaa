-- Which of these ids are taken. $1: ids. Differs from SQLite: an array.
SELECT j.id FROM jobs AS j WHERE j.id = ANY($1)
