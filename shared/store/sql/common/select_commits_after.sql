-- Where the next $2 commits after number $1 end, and how many they are.
SELECT max(c.number) AS number, count(*) AS commits
FROM (SELECT n.number FROM commits AS n WHERE n.number > $1 ORDER BY n.number LIMIT $2) AS c
