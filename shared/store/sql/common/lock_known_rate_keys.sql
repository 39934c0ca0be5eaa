-- What jobs asked of these limits last. None of them is forgotten before this transaction ends; claims go on.
SELECT k.name, k.asked FROM rate_keys AS k WHERE k.name {in: names} ORDER BY k.name {lock key share}
