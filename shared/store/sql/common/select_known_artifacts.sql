-- Which of these artifacts are kept.
SELECT a.id FROM artifacts AS a WHERE a.id {in: ids}
