-- Decides the charges of one request: all are charged, or none.
--
-- KEYS      Where the state of each charge lives. No key comes twice.
-- ARGV[1]   Now, in whole microseconds since the epoch; '' for this server's clock.
-- ARGV[2]   '1' to bring back to now what lies after it (a clock was set back), '0' to leave it (a trace's late stamp).
-- ARGV[3]   The shortest expiry, in milliseconds, at least 1.
-- ARGV[4]   What to do: `check` charges all if all fit; `force` charges all; `refund` gives back what was charged at
--           ARGV[5]; `pass` charges nothing (what can never fit); `look` does not even store a repair.
-- ARGV[5]   The time of a refund, in whole microseconds; '' otherwise.
-- ARGV[6…]  For each key: the algorithm, how long its state may matter in microseconds, how many words follow, and the words,
--           all of them whole numbers up to 2^53. The algorithms' files say which. The second is always the cost; a cost
--           of 0 is never refused and stores nothing.
--
-- Returns   now in microseconds and what became of it, then more:
--              1    all was admitted and charged; then for each key its state as it was found, '' where there was none; of a
--                   log that was found no more than the answer needs
--              0    something did not fit, and nothing was charged; then the same
--             -1    a count would go beyond 2^53: nothing was charged
--             -2    then a time: send it again with the calendar windows that hold this time; nothing was charged
--           Who called makes the answer of the states, with the arithmetic of the core.
--
-- A state is one string, written whole and always with an expiry. What begins with another letter than the algorithm's was
-- left by another, and counts as fresh. What no such script wrote is an error, as is a key that is no string.

local algorithms = {
  window = window, calendar = window, anchored = anchored, sliding = sliding, log = log, bucket = bucket, queue = queue,
}

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local repairs, shortest, mode, refund_at = ARGV[2] == '1', tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])

-- Reads the words of every charge, and its state.
local function read_all(reply)
  local all, at = {}, 6
  for i, key in ipairs(KEYS) do
    local account = { key = key, algorithm = algorithms[ARGV[at]], calendar = ARGV[at] == 'calendar', words = {} }
    account.matters = tonumber(ARGV[at + 1])
    local count = tonumber(ARGV[at + 2])
    for j = 1, count do account.words[j] = tonumber(ARGV[at + 2 + j]) end
    at = at + 3 + count
    account.amount, account.cost = account.words[1], account.words[2]
    local state = redis.call('GET', key)
    account.found = state and true or false
    reply[i + 2] = state or ''
    all[i] = account
    account.algorithm.read(account, state)
  end
  return all
end

-- Judges all, and charges in memory what is to be charged.
local function judge(all, reply)
  local admitted = true
  for i, account in ipairs(all) do
    if repairs then account.changed = account.algorithm.repair(account, now) end
    if account.algorithm.told then reply[i + 2] = account.algorithm.told(account, now, refund_at) end
    if mode == 'check' and account.cost > 0 and not account.algorithm.fits(account, now) then admitted = false end
  end
  local act = ({ check = 'charge', force = 'force', refund = 'refund' })[mode]
  if not admitted or not act then return admitted end
  for _, account in ipairs(all) do
    if account.cost > 0 and account.algorithm[act](account, now, refund_at) then account.changed = true end
  end
  return admitted
end

-- Decides, and says of every key that it is to be written or given an expiry for how long it matters. Nothing is written
-- before all of this is done, so that an error leaves all as it was.
local function decide(all, reply)
  local admitted = judge(all, reply)
  for _, account in ipairs(all) do
    -- Nobody but such scripts writes here, and they always say when a key ends. One that has lost that gets it again.
    account.bare = account.found and not account.changed and mode ~= 'look' and redis.call('PTTL', account.key) == -1
    if account.changed or account.bare then account.left = account.algorithm.fresh_at(account, now) - now end
  end
  return admitted
end

-- Rounded up, and one more: an expiry is counted from a clock that may have stood still for the script.
local function expiry(us)
  return format('%d', max(shortest, math.ceil(us / 1000) + 1))
end

local function write(account)
  if mode == 'look' then return end
  if account.changed then
    redis.call('SET', account.key, account.algorithm.state(account), 'PX', expiry(account.left))
  elseif account.bare then
    redis.call('PEXPIRE', account.key, expiry(max(account.left, account.matters)))
  end
end

local reply = { now, 0 }
local all = read_all(reply)
local good, admitted = pcall(decide, all, reply)
if not good then
  local why = admitted
  if type(why) == 'table' and why.too_many then return { now, -1 } end
  if type(why) == 'table' and why.window_at then return { now, -2, why.window_at } end
  error(why, 0)
end
for _, account in ipairs(all) do write(account) end
reply[2] = admitted and 1 or 0
return reply
