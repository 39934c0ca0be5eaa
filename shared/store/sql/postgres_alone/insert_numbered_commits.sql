-- Gives the next $2 new commits their numbers, in the order in which they were added. Two such statements run one after the
-- other, because they change the row of feed_order; the later one skips what the earlier one has taken. So a reader that sees a
-- number sees all lower ones. The numbers are $1 apart from those before: a number that a failover lost is not given again.
WITH picked AS MATERIALIZED (
    SELECT n.seq FROM new_commits AS n ORDER BY n.seq LIMIT $2
),
turn AS (
    UPDATE feed_order AS o
    SET number = o.number + $1 + (SELECT count(*) FROM picked)
    WHERE EXISTS (SELECT 1 FROM picked)
    RETURNING o.number - (SELECT count(*) FROM picked) AS base
),
taken AS (
    DELETE FROM new_commits AS n
    USING picked AS p
    -- The row of feed_order is locked before any row is deleted.
    WHERE n.seq = p.seq AND (SELECT t.base FROM turn AS t) IS NOT NULL
    RETURNING n.seq, n.id
),
numbered AS (
    -- Should two commits draw the same random id, both come at the later number: readers see the earlier one again.
    INSERT INTO commits AS c (id, number)
    SELECT o.id, max(o.number)
    FROM (SELECT n.id, (SELECT t.base FROM turn AS t) + row_number() OVER (ORDER BY n.seq) AS number FROM taken AS n) AS o
    GROUP BY o.id
    ON CONFLICT (id) DO UPDATE SET number = excluded.number
    RETURNING 1
)
SELECT (SELECT count(*) FROM picked) AS picked, (SELECT count(*) FROM numbered) AS numbered
