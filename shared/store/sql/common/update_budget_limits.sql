UPDATE totals
--- update_own_budget_limits
-- Sets the limits of an engagement's budget.
SET token_limit = $2,
    money_limit = $3,
    on_exceed   = $4,
    warn_at     = $5
WHERE seq = $1
--- update_shared_budget_limits
-- Sets the limits of a shared budget's rows for the days from $7 to $8.
SET token_limit = $2,
    money_limit = $3,
    on_exceed   = $4,
    warn_at     = $5,
    currency    = $6
WHERE name = $1 AND day BETWEEN $7 AND $8
--- update_totals_of_children
-- Counts children that engagements have got, and jobs that the trees of roots have got.
SET children = totals.children + r.many, tree_jobs = totals.tree_jobs + r.tree_jobs
FROM {rows: seq, many, tree_jobs}
WHERE totals.seq = r.seq
--- update_totals_of_inputs
-- Counts further inputs that engagements have got, and their events.
SET events = r.events, inputs = r.inputs
FROM {rows: seq, events, inputs}
WHERE totals.seq = r.seq
