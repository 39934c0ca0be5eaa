-- Which of these artifacts are kept. $1: ids. Differs from SQLite: an array.
SELECT a.id FROM artifacts AS a WHERE a.id = ANY($1)
