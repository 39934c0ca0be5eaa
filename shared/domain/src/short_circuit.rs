//! `lifespan.short_circuit`: the N-th consecutive repetition of a block of calls is refused (OAS-53).

use std::collections::HashMap;

/// Watches the names of attempted calls, and reports when one of them would complete the N-th copy of a block.
///
/// A block of length p is violated when each of the last `(N-1)·p` names equals the name p places before it. Lengths
/// that may reach that are searched for only now and then. Lengths from s up to 2s need at least s equal names in a
/// row, so one search in s/2 calls finds them. A length that was found is followed call by call until a name differs. A
/// call so costs a few comparisons: on average at most the logarithm of the length of the history.
#[derive(Clone, Debug)]
pub struct ShortCircuit {
    limit: usize,
    numbers: HashMap<String, u32>,
    /// The attempted names, as numbers.
    names: Vec<u32>,
    /// Block lengths that are followed, each with the number of last names that equal the name one block before.
    runs: Vec<(usize, usize)>,
    /// Comparisons so far.
    compared: usize,
}

impl ShortCircuit {
    /// Returns a watch with `short_circuit: limit`; `limit` must be at least 1 (a document with less is refused).
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit.max(1) as usize,
            numbers: HashMap::new(),
            names: Vec::new(),
            runs: Vec::new(),
            compared: 0,
        }
    }

    /// Records an attempt and returns whether it must be refused.
    ///
    /// Names only, inputs ignored; refused and unknown names count, because a model that hammers a denied tool is
    /// exactly the loop to stop.
    pub fn attempt(&mut self, name: &str) -> bool {
        if self.limit == 1 {
            return true;
        }
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => *self.numbers.entry(name.to_owned()).or_insert(next),
        };
        self.names.push(number);
        let at = self.names.len() - 1;
        let names = &self.names;
        self.compared += self.runs.len();
        self.runs.retain_mut(|(block, run)| {
            *run += 1;
            names[at - *block] == number
        });
        let mut scale = 1;
        while scale * 2 <= self.names.len() {
            if self.names.len().is_multiple_of((scale / 2).max(1)) {
                self.search(scale);
            }
            scale *= 2;
        }
        self.runs.iter().any(|(block, run)| *run >= (self.limit - 1) * block)
    }

    /// Searches block lengths from `scale` up to its double whose last `scale / 2` names are equal already, and follows
    /// them. A length is found before `scale` of its names are equal.
    fn search(&mut self, scale: usize) {
        let length = self.names.len();
        let least = (scale / 2).max(1);
        for block in scale..(scale * 2).min(length) {
            if self.runs.iter().any(|(known, _)| *known == block) {
                continue;
            }
            let equal = (0..length - block)
                .take_while(|back| self.names[length - 1 - back] == self.names[length - 1 - back - block])
                .count();
            self.compared += equal + 1;
            if equal >= least {
                self.runs.push((block, equal));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ShortCircuit;
    use crate::digest;

    fn stops_at(limit: u32, names: &str) -> Option<usize> {
        let mut watch = ShortCircuit::new(limit);
        names.split_whitespace().position(|name| watch.attempt(name)).map(|at| at + 1)
    }

    fn by_definition(limit: usize, s: &[usize]) -> bool {
        let len = s.len();
        (1..=len / limit).any(|p| (len - (limit - 1) * p..len).all(|i| s[i] == s[i - p]))
    }

    fn agrees(limit: usize, names: &[usize]) {
        let mut watch = ShortCircuit::new(u32::try_from(limit).unwrap());
        for len in 1..=names.len() {
            let expected = by_definition(limit, &names[..len]);
            assert_eq!(watch.attempt(&names[len - 1].to_string()), expected, "{limit} {:?}", &names[..len]);
            if expected {
                return;
            }
        }
    }

    /// OAS-53: the two examples of the specification.
    #[test]
    fn the_two_examples_of_the_specification() {
        assert_eq!(stops_at(3, "1 1 1"), Some(3));
        assert_eq!(stops_at(3, "1 2 1 2 1 2"), Some(6));
    }

    #[test]
    fn further_sequences() {
        assert_eq!(stops_at(2, "A A B"), Some(2));
        assert_eq!(stops_at(2, "A B A B"), Some(4));
        assert_eq!(stops_at(2, "A B A B A C"), Some(4));
        assert_eq!(stops_at(3, "A A B A A B A A B"), Some(9));
        assert_eq!(stops_at(3, "X A B A B A B"), Some(7));
        assert_eq!(stops_at(3, "A B A B A C"), None);
        assert_eq!(stops_at(1, "A"), Some(1));
    }

    #[test]
    fn agrees_with_the_definition_on_all_short_sequences() {
        for limit in 1..=4 {
            for code in 0..3_usize.pow(8) {
                let names: Vec<usize> = (0..8).map(|i| code / 3_usize.pow(i) % 3).collect();
                agrees(limit, &names);
            }
        }
    }

    /// Blocks of every length up to 60, after a beginning of any length, with a copy that is spoilt now and then.
    #[test]
    fn agrees_with_the_definition_on_long_blocks() {
        let noise = |seed: usize, n: usize| {
            let text = digest::of_text(&format!("{seed} {n}"));
            usize::from_str_radix(&text[..6], 16).unwrap()
        };
        for limit in 2..=4 {
            for block in 1..=60 {
                for round in 0..4 {
                    let seed = limit * 1000 + block * 10 + round;
                    let before = noise(seed, 0) % 50;
                    let mut names: Vec<usize> = (0..before).map(|n| noise(seed, n) % 7).collect();
                    for copy in 0..limit {
                        for n in 0..block {
                            let spoilt = round == 3 && copy == 1 && n == block / 2;
                            names.push(if spoilt { 99 } else { noise(seed + 1, n) % 7 });
                        }
                    }
                    agrees(limit, &names);
                }
            }
        }
    }

    /// The cost of a call does not grow with the history, for a history that repeats itself as much as it may.
    #[test]
    fn a_call_costs_a_few_comparisons_whatever_came_before() {
        for calls in [1_000_usize, 20_000] {
            // Without cubes, and full of squares: the number of ones in the binary form, even or odd.
            let mut watch = ShortCircuit::new(3);
            for n in 0..calls {
                assert!(!watch.attempt(if n.count_ones() % 2 == 0 { "a" } else { "b" }), "{n}");
            }
            let each = watch.compared / calls;
            assert!(each < 100, "{each} comparisons per call after {calls}");
        }
    }
}
