//! States that do not fit two words, in chunks that are freed as soon as they are empty.

use std::mem;

use sekisho_core::State;

/// How many states a chunk holds.
const CHUNK: u32 = 32;

/// Larger states, each with a number.
#[derive(Debug, Default)]
pub(super) struct Large {
    chunks: Vec<Option<Box<Chunk>>>,
    /// The chunks that have room.
    open: Vec<u32>,
    /// The numbers of chunks that are not there.
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Chunk {
    /// One bit a state.
    used: u32,
    /// Where among the open ones this is, while it has room.
    open_at: u32,
    states: [State; CHUNK as usize],
}

/// What one more state takes at most: a chunk, and a share of the lists.
pub(in crate::store) const STATE_BYTES_MAX: usize = size_of::<Chunk>() + 64;

impl Large {
    /// Returns what is allocated, but for the states' own logs.
    pub(super) fn bytes(&self) -> usize {
        let chunks = self.chunks.len() - self.vacant.len();
        chunks * size_of::<Chunk>()
            + self.chunks.capacity() * size_of::<Option<Box<Chunk>>>()
            + (self.open.capacity() + self.vacant.capacity()) * size_of::<u32>()
    }

    /// Keeps a state, and returns its number.
    pub(super) fn insert(&mut self, state: State) -> u32 {
        let number = self.open.last().copied().unwrap_or_else(|| self.new_chunk());
        let Some(chunk) = self.chunks.get_mut(number as usize).and_then(Option::as_mut) else {
            unreachable!("a chunk that is open is there")
        };
        let at = chunk.used.trailing_ones();
        chunk.used |= 1 << at;
        chunk.states[at as usize] = state;
        if chunk.used == u32::MAX {
            let _full = self.open.pop();
        }
        number * CHUNK + at
    }

    #[expect(clippy::cast_possible_truncation, reason = "a shard has far fewer than 2³² states")]
    fn new_chunk(&mut self) -> u32 {
        let chunk = Box::new(Chunk {
            used: 0,
            open_at: self.open.len() as u32,
            states: [const { State::Fresh }; CHUNK as usize],
        });
        let number = if let Some(number) = self.vacant.pop() {
            self.chunks[number as usize] = Some(chunk);
            number
        } else {
            self.chunks.push(Some(chunk));
            self.chunks.len() as u32 - 1
        };
        self.open.push(number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &State {
        const FRESH: &State = &State::Fresh;
        let chunk = self.chunks.get((number / CHUNK) as usize).and_then(Option::as_ref);
        chunk.map_or(FRESH, |chunk| &chunk.states[(number % CHUNK) as usize])
    }

    /// Takes a state out for a moment.
    pub(super) fn take(&mut self, number: u32) -> State {
        let chunk = self.chunks.get_mut((number / CHUNK) as usize).and_then(Option::as_mut);
        chunk.map_or(State::Fresh, |chunk| mem::take(&mut chunk.states[(number % CHUNK) as usize]))
    }

    /// Puts back a state that was taken out.
    pub(super) fn put(&mut self, number: u32, state: State) {
        let chunk = self.chunks.get_mut((number / CHUNK) as usize).and_then(Option::as_mut);
        if let Some(chunk) = chunk {
            chunk.states[(number % CHUNK) as usize] = state;
        }
    }

    /// Gives a number up, and returns its state.
    #[expect(clippy::cast_possible_truncation, reason = "a shard has far fewer than 2³² states")]
    pub(super) fn remove(&mut self, number: u32) -> State {
        let state = self.take(number);
        let index = number / CHUNK;
        let Some(chunk) = self.chunks.get_mut(index as usize).and_then(Option::as_mut) else {
            return state;
        };
        if chunk.used == u32::MAX {
            chunk.open_at = self.open.len() as u32;
            self.open.push(index);
        }
        chunk.used &= !(1 << (number % CHUNK));
        if chunk.used == 0 {
            let at = chunk.open_at;
            self.chunks[index as usize] = None;
            self.vacant.push(index);
            let _closed = self.open.swap_remove(at as usize);
            let moved = self.open.get(at as usize).copied();
            if let Some(chunk) = moved.and_then(|moved| self.chunks[moved as usize].as_mut()) {
                chunk.open_at = at;
            }
        }
        if self.vacant.len() == self.chunks.len() {
            *self = Self::default();
        }
        state
    }
}
