UPDATE reviews
--- update_review
-- Changes an open review before it is decided: a vote, a reminder, an escalation.
SET reviewer = r.reviewer, members = r.members, step = r.step, votes = r.votes, deadline_at = r.deadline_at,
    remind_at = r.remind_at, reminders = r.reminders
FROM {rows: id, reviewer, members, step, votes, deadline_at, remind_at, reminders}
WHERE reviews.id = r.id AND reviews.state = 'open'
--- update_decided_review
-- Answers open reviews.
SET state = r.state, decided_by = r.decided_by, reason = r.reason, decided_at = r.decided_at, reported = r.reported
FROM {rows: id, state, decided_by, reason, decided_at, reported}
WHERE reviews.id = r.id AND reviews.state = 'open'
--- update_spent_review
-- The rejection of a review counts no more.
SET spent = 1 WHERE id = $1
--- update_spent_reviews
-- Rejections that ended a job count no more, because it is tried again. $1: seq. A decision about a call of unknown
-- outcome stays. Of an imported engagement no decision counts: another server recorded it.
SET spent = 1
WHERE job_seq = $1
  AND (state IN ('rejected', 'expired') AND kind <> 'unknown_outcome'
       OR EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = reviews.engagement_seq AND e.imported_at IS NOT NULL))
--- update_closed_reviews
-- Closes the open reviews of a job that has ended without them.
SET state = 'expired', decided_at = $2
WHERE job_seq = $1 AND state = 'open'
--- update_reminded_review
-- Records that a client has received review $1.
SET told = 1 WHERE id = $1 AND told = 0
--- update_late_review
-- Notes who answers a review late, unless that is noted already, or so many are that there is no room. $1 id, $2 the
-- name between line breaks.
SET late = late || $2
WHERE id = $1 AND replace(late, $2, '') = late AND length(late) + length($2) <= 1000
