//! `lifespan.short_circuit`: the N-th consecutive repetition of a block of calls is refused (OAS-53).

/// Watches the names of attempted calls and tells when one of them would complete the N-th copy of a block.
///
/// For every block length p it keeps how many trailing positions equal the one p places before them; a violation is
/// `(N-1)·p` such positions. That is one comparison per open block length and call.
#[derive(Clone, Debug)]
pub struct ShortCircuit {
    limit: usize,
    names: Vec<String>,
    runs: Vec<usize>,
}

impl ShortCircuit {
    /// A watch with `short_circuit: limit`; `limit` must be at least 1 (a document with less is refused).
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit: limit.max(1) as usize, names: Vec::new(), runs: Vec::new() }
    }

    /// Records an attempt and returns whether it must be refused.
    ///
    /// Names only, inputs ignored; refused and unknown names count, because a model that hammers a denied tool is
    /// exactly the loop to stop.
    pub fn attempt(&mut self, name: &str) -> bool {
        let at = self.names.len();
        self.names.push(name.to_owned());
        // Blocks longer than length / limit cannot have `limit` copies yet, but their runs must be counted already.
        self.runs.push(0);
        let mut refused = self.limit == 1;
        for block in 1..=at {
            let run = &mut self.runs[block];
            if self.names[at - block] == name {
                *run += 1;
                refused |= *run >= (self.limit - 1) * block && self.limit * block <= at + 1;
            } else {
                *run = 0;
            }
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::ShortCircuit;

    fn stops_at(limit: u32, names: &str) -> Option<usize> {
        let mut watch = ShortCircuit::new(limit);
        names.split_whitespace().position(|name| watch.attempt(name)).map(|at| at + 1)
    }

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
        for limit in 1..=4_usize {
            for code in 0..3_usize.pow(8) {
                let names: Vec<usize> = (0..8).map(|i| code / 3_usize.pow(i) % 3).collect();
                let mut watch = ShortCircuit::new(limit as u32);
                for len in 1..=names.len() {
                    let s = &names[..len];
                    let by_definition =
                        (1..=len / limit).any(|p| (len - (limit - 1) * p..len).all(|i| s[i] == s[i - p]));
                    assert_eq!(watch.attempt(&s[len - 1].to_string()), by_definition, "{limit} {s:?}");
                    if by_definition {
                        break;
                    }
                }
            }
        }
    }
}
