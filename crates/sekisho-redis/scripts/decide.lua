-- Decides the charges of one request: all are charged, or none.
--
-- KEYS      Where the state of each charge lives. No key comes twice.
-- ARGV[1]   Now, in whole microseconds since the epoch; '' for this server's clock.
-- ARGV[2]   '1' to bring back to now what lies after it (a clock was set back), '0' to leave it (a trace's late stamp).
-- ARGV[3]   The shortest expiry, in milliseconds, at least 1.
-- ARGV[4…]  Six words for each key:
--             bucket  amount  burst us  burst rest  cost us  cost rest
--             window  amount  period us  cost  0  0
--           A bucket's burst and cost are the time that so many units take to come back. A cost of 0 looks: it is never
--           refused and stores nothing, so to look at a whole request its costs are 0.
--
-- Returns   now in microseconds, 1 if all were admitted and charged or else 0, then for each key its state as it was found,
--           '' where there was none. Who called makes the answer of these, with the arithmetic of the core.
--
-- A state is one string, written whole and always with an expiry:
--             b <us> <rest> <amount>    a bucket is full again <us> and <rest>/<amount> microseconds after the epoch
--             w <us> <used>             a window began at <us>, and <used> units are used in it
-- What begins with another letter was left by another algorithm, and counts as fresh.
--
-- Numbers   Lua has doubles, exact to 2^53. A time that is no whole number of microseconds is therefore two numbers, whole
--           microseconds and a rest in 1/amount of one, and two such times are only added and compared, never multiplied.
--           Who called keeps amounts to 2^51, and each time, with a full burst or period after it, to 2^53. Then no number that
--           is stored or told goes beyond 2^53.

-- A hundred years and a microsecond: longer than any bucket takes to fill.
local BEYOND = 36500 * 86400000000 + 1

local floor, fmod, format, max = math.floor, math.fmod, string.format, math.max

-- Carries the whole microseconds of a rest. A quotient of numbers below 2^53 never rounds up to the next whole one.
local function carried(us, rest, amount)
  local whole = floor(rest / amount)
  return us + whole, rest - whole * amount
end

-- Returns (us * from + rest) / to: the same usage, under another amount. The product may not fit, so it is made by doubling,
-- one bit of us at a time.
local function converted(us, rest, from, to)
  if from == to then return us, rest end
  local step_us, step_rest = carried(0, from, to)
  local out_us, out_rest = 0, 0
  local bit = 2 ^ 52
  while bit >= 1 do
    out_us, out_rest = carried(2 * out_us, 2 * out_rest, to)
    if us >= bit then
      us = us - bit
      out_us, out_rest = carried(out_us + step_us, out_rest + step_rest, to)
    end
    if out_us >= BEYOND then return BEYOND, 0 end
    bit = bit / 2
  end
  local more_us, more_rest = carried(0, rest, to)
  return carried(out_us + more_us, out_rest + more_rest, to)
end

-- The numbers behind the letter of a state; nothing where it is fresh or another algorithm's.
local function numbers(state, letter, pattern)
  if not state or state:sub(1, 1) ~= letter then return nil end
  local a, b, c = state:match(pattern)
  if not a then error('a key holds what this script never wrote', 0) end
  return tonumber(a), tonumber(b), tonumber(c)
end

-- Each algorithm reads a state into a charge, which then knows whether it fits; and gives the text of the new state and the
-- microseconds until that equals a fresh one.

local bucket = {}

-- The level is how far ahead the bucket is full again. Microseconds before now are past, whatever their rest.
function bucket.read(charge, state, now, repairs)
  charge.us, charge.rest = 0, 0
  local us, rest, amount = numbers(state, 'b', '^b (%d+) (%d+) (%d+)$')
  if us and us >= now then
    charge.us, charge.rest = converted(us - now, rest, amount, charge.amount)
  end
  local full_us, full_rest, cost_us, cost_rest = charge[1], charge[2], charge[3], charge[4]
  local function over(a_us, a_rest)
    return a_us > full_us or (a_us == full_us and a_rest > full_rest)
  end
  if repairs and over(charge.us, charge.rest) then
    charge.us, charge.rest, charge.changed = full_us, full_rest, true
  end
  charge.costs = cost_us > 0 or cost_rest > 0
  charge.new_us, charge.new_rest = carried(charge.us + cost_us, charge.rest + cost_rest, charge.amount)
  charge.fits = not over(charge.new_us, charge.new_rest)
end

function bucket.charge(charge)
  charge.us, charge.rest = charge.new_us, charge.new_rest
end

function bucket.state(charge, now)
  local left = charge.us + (charge.rest > 0 and 1 or 0)
  return format('b %d %d %d', now + charge.us, charge.rest, charge.amount), left
end

local window = {}

-- The open window is the newer of the state's and the one that holds now.
function window.read(charge, state, now, repairs)
  local period, cost = charge[1], charge[2]
  local start, used = numbers(state, 'w', '^w (%d+) (%d+)$')
  start, used = start or 0, used or 0
  if repairs and start > now then
    start, charge.changed = now - fmod(now, period), true
  end
  local at = max(now, start)
  charge.start = at - fmod(at, period)
  charge.used = charge.start > start and 0 or used
  charge.costs = cost > 0
  charge.fits = charge.used + cost <= charge.amount
end

function window.charge(charge)
  charge.used = charge.used + charge[2]
end

function window.state(charge, now)
  return format('w %d %d', charge.start, charge.used), charge.start + charge[1] - now
end

local algorithms = { bucket = bucket, window = window }

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local repairs, shortest = ARGV[2] == '1', tonumber(ARGV[3])

local states = #KEYS > 0 and redis.call('MGET', unpack(KEYS)) or {}
local reply = { now, 0 }
local all, admitted = {}, true
for i = 1, #KEYS do
  local at = 4 + 6 * (i - 1)
  local charge = { algorithm = algorithms[ARGV[at]], amount = tonumber(ARGV[at + 1]) }
  for j = 1, 4 do charge[j] = tonumber(ARGV[at + 1 + j]) end
  charge.algorithm.read(charge, states[i], now, repairs)
  admitted = admitted and (charge.fits or not charge.costs)
  all[i], reply[i + 2] = charge, states[i] or ''
end

for i, charge in ipairs(all) do
  if admitted and charge.costs then
    charge.algorithm.charge(charge)
    charge.changed = true
  end
  if charge.changed then
    local state, left = charge.algorithm.state(charge, now)
    -- Rounded up, and one more: an expiry is counted from a clock that may have stood still for the script.
    local expiry = max(shortest, math.ceil(left / 1000) + 1)
    redis.call('SET', KEYS[i], state, 'PX', format('%d', expiry))
  end
end

reply[2] = admitted and 1 or 0
return reply
