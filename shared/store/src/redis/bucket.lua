-- The arithmetic of limits/bucket.rs, where it is explained, in one atomic step.
-- KEYS: the bucket, the hold. ARGV: what to do, now, and for requests and tokens each: rate, capacity, cost (-1: no limit).
-- Returns whether it was done, until when to wait, and whether the provider holds everybody.
local now = tonumber(ARGV[2])
local flows = {
  { name = 'r', rate = tonumber(ARGV[3]), capacity = tonumber(ARGV[4]), cost = tonumber(ARGV[5]) },
  { name = 't', rate = tonumber(ARGV[6]), capacity = tonumber(ARGV[7]), cost = tonumber(ARGV[8]) },
}
local floor = -2251799813685248

if ARGV[1] == 'take' then
  local held = tonumber(redis.call('GET', KEYS[2]) or '0')
  if held > now then
    return { 0, held, 1 }
  end
end

local kept = redis.call('HMGET', KEYS[1], 'r', 't', 'at')
local as_of = tonumber(kept[3] or now)
if as_of - now > 60000 then
  as_of = now
end
local elapsed = math.max(0, now - as_of)
local wait = 0
for at, flow in ipairs(flows) do
  if flow.rate < 0 then
    flow.level = tonumber(kept[at] or 0)
  else
    flow.level = math.min(flow.capacity, tonumber(kept[at] or flow.capacity) + elapsed * flow.rate)
    if ARGV[1] == 'take' then
      local wanted = math.min(flow.cost, flow.capacity)
      wait = math.max(wait, math.ceil(math.max(0, wanted - flow.level) / flow.rate))
    end
  end
end
as_of = math.max(as_of, now)
if wait > 0 then
  return { 0, as_of + wait, 0 }
end

local full = 0
for _, flow in ipairs(flows) do
  if flow.rate > 0 then
    flow.level = math.max(floor, math.min(flow.capacity, flow.level - flow.cost))
    full = math.max(full, math.ceil((flow.capacity - flow.level) / flow.rate))
  end
end
redis.call('HSET', KEYS[1], 'r', string.format('%.0f', flows[1].level), 't', string.format('%.0f', flows[2].level),
  'at', string.format('%.0f', as_of))
-- A full bucket is as good as none; the clock of this server may differ from the caller's.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(full, 86400000) + 120000))
return { 1, 0, 0 }
