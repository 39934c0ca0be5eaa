-- Moves totals: counters to what they are now, amounts by differences; the table's CHECKs refuse a row that would exceed a limit.
-- A counter that is NULL stays. A row is written only while its counters are as they were read, where they were, and only while
-- what is spent lies where it was thought to lie, so that a warning is given once.
-- $1: JSON [[seq, turns, events, messages, events and messages as read, settled, reserved, money settled, money reserved, the
-- least and the most tokens spent before, the same in money], …].
-- Differs from PostgreSQL: json_each.
UPDATE totals
SET turns          = coalesce(r.value ->> 1, turns),
    events         = coalesce(r.value ->> 2, events),
    messages       = coalesce(r.value ->> 3, messages),
    settled        = settled + (r.value ->> 6),
    reserved       = reserved + (r.value ->> 7),
    money_settled  = money_settled + (r.value ->> 8),
    money_reserved = money_reserved + (r.value ->> 9)
FROM json_each($1) AS r
WHERE totals.seq = r.value ->> 0
  AND totals.events = coalesce(r.value ->> 4, totals.events)
  AND totals.messages = coalesce(r.value ->> 5, totals.messages)
  AND totals.settled BETWEEN r.value ->> 10 AND r.value ->> 11
  AND totals.money_settled BETWEEN r.value ->> 12 AND r.value ->> 13
