SELECT {columns of review}
FROM reviews AS v
JOIN engagements AS e ON e.seq = v.engagement_seq
JOIN jobs AS j ON j.seq = v.job_seq
--- select_reviews
-- Reviews, oldest first. $1 state, $2 reviewer, $3 tenant, $6 engagement, $8 the review that they follow; NULL matches
-- all. $7 is the reviewer between line breaks, as those who are asked together are written.
WHERE ($1 IS NULL OR v.state = $1) AND ($2 IS NULL OR v.reviewer = $2 OR replace(v.members, $7, '') <> v.members) AND ($3 IS NULL OR j.tenant = $3)
  AND ($6 IS NULL OR e.id = $6) AND ($8 IS NULL OR v.seq > (SELECT p.seq FROM reviews AS p
                                               JOIN jobs AS o ON o.seq = p.job_seq
                                               WHERE p.id = $8 AND ($3 IS NULL OR o.tenant = $3)))
ORDER BY v.seq
LIMIT $4 OFFSET $5
--- select_review_by_id
-- One review. $2 tenant of its job; NULL means every one.
WHERE v.id = $1 AND ($2 IS NULL OR j.tenant = $2)
--- select_review_by_asked
-- The open review that an agent is asked about in an engagement.
WHERE v.asked = $1 AND v.state = 'open'
--- select_reviews_of_turn
-- Reviews about the calls of one turn that count, oldest first.
WHERE j.id = $1 AND v.turn = $2 AND v.spent = 0
ORDER BY v.seq
