-- Notes until when a provider wants no calls. A longer hold stays as it is. KEYS: the hold. ARGV: until, now.
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
local until_ms, now = tonumber(ARGV[1]), tonumber(ARGV[2])
if until_ms > held and until_ms > now then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', string.format('%.0f', until_ms - now + 120000))
end
return 1
