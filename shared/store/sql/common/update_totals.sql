-- Moves totals: counters to what they are now, amounts by differences. A row is written only if its limit has room for `granted`,
-- the most that its reservations add at once; it is NULL without one. A counter that is NULL stays. A row is written only while its counters are as they were read, where
-- they were, and only while what is spent lies where it was thought to lie, so that a warning is given once. Rows come and
-- are locked in one order for all: delegates before those that they work for, shared budgets last.
UPDATE totals
SET turns          = coalesce(r.turns, totals.turns),
    events         = coalesce(r.events, totals.events),
    messages       = coalesce(r.messages, totals.messages),
    writes         = coalesce(r.writes, totals.writes),
    turn           = coalesce(r.turn, totals.turn),
    phase          = coalesce(r.phase, totals.phase),
    settled        = totals.settled + r.settled,
    reserved       = totals.reserved + r.reserved,
    money_settled  = totals.money_settled + r.money_settled,
    money_reserved = totals.money_reserved + r.money_reserved
FROM {rows: seq, turns, events, messages, writes, turn, phase, read_events, read_messages, read_writes, settled, reserved,
            money_settled, money_reserved, least, most, money_least, money_most, granted, money_granted}
WHERE totals.seq = r.seq
  AND totals.events = coalesce(r.read_events, totals.events)
  AND totals.messages = coalesce(r.read_messages, totals.messages)
  AND totals.writes = coalesce(r.read_writes, totals.writes)
  AND totals.settled BETWEEN r.least AND r.most
  AND totals.money_settled BETWEEN r.money_least AND r.money_most
  AND coalesce(totals.settled + totals.reserved + r.granted <= totals.token_limit, TRUE)
  AND coalesce(totals.money_settled + totals.money_reserved + r.money_granted <= totals.money_limit, TRUE)
