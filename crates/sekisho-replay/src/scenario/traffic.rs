//! The requests of a scenario: those of its patterns and of its trace, in the order of their times.

use std::{collections::HashMap, io::BufRead};

use super::{KEYS_MAX, Scenario, ScenarioError};
use crate::{
    experiment::trial::Traffic,
    pattern::{ARRIVALS_MAX, COST_MAX, Request},
    random::{Random, Zipf},
    trace::{NO_KEY, Numbered, Reader},
};

impl Scenario {
    /// Makes the requests. Each pattern, and the keys, have a sequence of chance of their own, so that one more pattern does not
    /// change the others.
    pub(super) fn traffic(
        &self,
        trace: Option<&mut dyn BufRead>,
    ) -> Result<Traffic, ScenarioError> {
        let mut seeds = Random::new(self.world.seed);
        let mut key_chance = Random::new(seeds.any());
        let mut requests: Vec<Request> = Vec::new();
        let room = |requests: &Vec<Request>| (requests.len() as u64) < ARRIVALS_MAX;
        for (_, pattern) in &self.patterns {
            let mut fits = true;
            pattern.each(&mut Random::new(seeds.any()), |at| {
                fits = room(&requests);
                if fits {
                    requests.push(Request { at, key: 0, cost: pattern.cost() });
                }
                fits
            });
            if !fits {
                return Err(ScenarioError::Arrivals);
            }
        }
        // Stable: of the same time, the pattern that is written first comes first.
        requests.sort_by_key(|request| request.at);
        self.deal_keys(&mut requests, &mut key_chance);
        let names = match self.keys {
            1 => vec![NO_KEY.to_owned()],
            keys => (1..=keys).map(|key| format!("k{key}")).collect(),
        };
        let mut traffic = Traffic { requests, names };
        if let Some(trace) = trace {
            traffic.add_trace(trace)?;
            traffic.requests.sort_by_key(|request| request.at);
        }
        Ok(traffic)
    }

    fn deal_keys(&self, requests: &mut [Request], chance: &mut Random) {
        let zipf = self.zipf_thousandths.map(|skew| Zipf::new(self.keys, skew));
        for request in requests {
            request.key = match &zipf {
                Some(zipf) => zipf.draw(chance),
                None => u32::try_from(chance.below(self.keys.into())).unwrap_or_default(),
            };
        }
    }
}

impl Traffic {
    fn add_trace(&mut self, trace: &mut dyn BufRead) -> Result<(), ScenarioError> {
        let mut known: HashMap<String, u32> =
            (0..).zip(&self.names).map(|(key, name)| (name.clone(), key)).collect();
        for read in Reader::new(trace) {
            let Numbered { line, arrival } = read?;
            if arrival.cost > COST_MAX {
                return Err(ScenarioError::Cost { line });
            }
            if self.requests.len() as u64 >= ARRIVALS_MAX {
                return Err(ScenarioError::Arrivals);
            }
            let key = if let Some(key) = known.get(&arrival.key) {
                *key
            } else {
                let key = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                if key >= KEYS_MAX {
                    return Err(ScenarioError::Keys);
                }
                self.names.push(arrival.key.clone());
                known.insert(arrival.key, key);
                key
            };
            self.requests.push(Request { at: arrival.at, key, cost: arrival.cost });
        }
        Ok(())
    }
}
