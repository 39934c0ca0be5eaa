-- The newest values that jobs named for these limits. None is deleted before this transaction ends; claims continue.
SELECT k.name, k.asked FROM rate_keys AS k WHERE k.name {in: names} ORDER BY k.name {lock key share}
