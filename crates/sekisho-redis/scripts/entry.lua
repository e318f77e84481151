-- Decides requests. Each is all or none: all of its charges are made, or none.
--
-- KEYS      Where the state of each charge lives, request by request. No key comes twice.
-- ARGV[1]   Now, in whole microseconds since the epoch; '' for this server's clock. A given time is a trace's: what lies after
--           it is left there (a late stamp), and states are kept for ten minutes of real time at least. This server's clock
--           may have been set back: what lies after now is brought back to it.
-- ARGV[2]   The requests, one after the other:
--              1 byte    what to do: `c` charges all if all fit; `f` charges all; `r` gives back; `p` charges nothing (what can
--                        never fit); `l` does not even store a repair; `x` removes the state of one key, and needs no words
--              2 bytes   how many such requests came at once, the higher byte first; each is decided in its turn
--              1 byte    how many keys
--              8 bytes   for `r` alone: when it was charged, in whole microseconds, as a little-endian double
--              2 bytes   for each key: which words, counted from 0, the higher byte first
-- ARGV[3…]  Words: the algorithm's letter, and numbers as little-endian doubles, all of them whole and at most 2^53. The first
--           says how long a state may matter, in microseconds, the second is the amount and the third the cost; a cost of 0 is
--           never refused and stores nothing. The algorithms' files say the rest.
--
-- Returns   now in microseconds; then for each request what became of it, and something for each of its keys:
--              n >= 0    so many of those that came at once were admitted, or removed; the keys' states as they were found, '' where there
--                        was none; of a log no more than the answers need. What is not checked counts as admitted.
--             -1         a count would go beyond 2^53: nothing was charged
--             -2         then a time: send it again with the calendar windows that hold this time; nothing was charged
--             -3         then a message: something is wrong with the key, or this server; nothing was charged
--           Who called makes the answers of the states, with the arithmetic of the core.
--
-- A state is one string, written whole and always with an expiry. What begins with another letter than the algorithm's was
-- left by another, and counts as fresh. What no such script wrote is an error, as is a key that is no string.

local byte, ceil, format, match, unpack_words = string.byte, math.ceil, string.format, string.match, struct.unpack
local call = redis.call

-- The first whole number that a double may stand for without being it.
local EXACT = 2 ^ 53

local now, is_live, shortest = tonumber(ARGV[1]), false, 600000
if not now then
  local time = call('TIME')
  now, is_live, shortest = time[1] * 1000000 + time[2], true, 1
end
local plan, key_count = ARGV[2], #KEYS
local reply, replies = { now }, 1
-- The requests that are not decided here: where each begins in the plan, among the keys, and in the reply.
local later, laters

-- Most requests are a check of one bucket that is as it should be. Those are decided here; any other is noted, and decided
-- further down. No two have a key in common, so their order changes nothing.
local words_read, letter, matters, amount, cost, cost_us, cost_rest, full_us, full_rest, _, burst
-- How a state ends that was written with the same numbers and has no debt.
local numbers_now
local at, key = 1, 1
while key <= key_count do
  local mode, high, low, count, word_high, word_low = byte(plan, at, at + 5)
  local us, rest, state
  -- `c`, and one key.
  if mode == 99 and count == 1 then
    local place = word_high * 256 + word_low
    if place ~= words_read then
      local words = ARGV[place + 3]
      letter, words_read = byte(words), place
      -- `b`
      if letter == 98 then
        matters, amount, cost, cost_us, cost_rest, full_us, full_rest, _, _, burst = unpack_words('<dddddddddd', words, 2)
        numbers_now = burst == amount and format('%d', amount) or format('%d %d', amount, burst)
      end
    end
    if letter == 98 and cost > 0 then
      state = redis.pcall('GET', KEYS[key])
      if not state then
        us, rest = now, 0
      elseif type(state) == 'string' then
        local found_us, found_rest, found_numbers = match(state, '^b (%d+) (%d+) (.+)$')
        if found_numbers == numbers_now then
          us, rest = tonumber(found_us), tonumber(found_rest)
          if us >= EXACT or rest >= amount then
            us = nil
          elseif us < now then
            us, rest = now, 0
          elseif is_live and us - now >= full_us then
            -- Further ahead than a full wait, perhaps.
            us = nil
          end
        end
      end
    end
  end
  if us then
    local most, admitted, times = now + full_us, 0, high * 256 + low
    repeat
      local next_us, next_rest = us + cost_us, rest + cost_rest
      if next_rest >= amount then next_us, next_rest = next_us + 1, next_rest - amount end
      if next_us > most or next_us == most and next_rest > full_rest then break end
      us, rest, admitted = next_us, next_rest, admitted + 1
    until admitted == times
    if admitted > 0 then
      -- Rounded up, and one more: an expiry is counted from a clock that may have stood still for the script.
      local left = ceil((us - now + (rest > 0 and 1 or 0)) / 1000) + 1
      if left < shortest then left = shortest end
      call('SET', KEYS[key], format('b %d %d %s', us, rest, numbers_now), 'PX', format('%d', left))
    elseif state and call('PTTL', KEYS[key]) == -1 then
      call('PEXPIRE', KEYS[key], format('%d', ceil(matters / 1000) + 1))
    end
    reply[replies + 1], reply[replies + 2] = admitted, state or ''
    replies, at, key = replies + 2, at + 6, key + 1
  else
    if not later then later, laters = {}, 0 end
    later[laters + 1], later[laters + 2], later[laters + 3] = at, key, replies
    laters = laters + 3
    -- The places are filled later.
    for i = replies + 1, replies + 1 + count do reply[i] = '' end
    replies, key = replies + 1 + count, key + count
    at = at + 4 + 2 * count + (mode == 114 and 8 or 0)
  end
end
if not later then return reply end
