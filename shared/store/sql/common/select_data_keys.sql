-- The keys that values are sealed with, each of them sealed.
SELECT k.seq, k.body FROM data_keys AS k ORDER BY k.seq
