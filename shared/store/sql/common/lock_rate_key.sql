-- One limit, to be changed.
SELECT k.name, k.asked, k.overridden FROM rate_keys AS k WHERE k.name = $1 {lock no key update}
