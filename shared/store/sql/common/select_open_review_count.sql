-- How many reviews are open.
SELECT count(*) AS reviews FROM reviews AS v WHERE v.state = 'open'
