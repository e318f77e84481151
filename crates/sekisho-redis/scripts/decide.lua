-- Decides what is left: any mix of limits, in any mode.

make_tools()

-- Rounded up, and one more: an expiry is counted from a clock that may have stood still for the script.
local function expiry(us)
  return format('%d', max(shortest, ceil(us / 1000) + 1))
end

local makers = {
  w = make_windows, k = make_windows, a = make_windows, s = make_windows, l = make_log, b = make_levels, q = make_levels,
}
local algorithms = {}

local function algorithm(letter)
  if not algorithms[letter] then
    for name, made in pairs(makers[letter]()) do algorithms[name] = made end
  end
  return algorithms[letter]
end

-- Reads the words and the state of a key.
local function read(key, words)
  local letter = words:sub(1, 1)
  local list = { unpack_words('<' .. ('d'):rep((#words - 1) / 8), words, 2) }
  local account = { key = key, algorithm = algorithm(letter), calendar = letter == 'k', matters = list[1], words = {} }
  -- What unpacks also says where it stopped.
  for i = 2, #list - 1 do account.words[i - 1] = list[i] end
  account.amount, account.cost = account.words[1], account.words[2]
  local state = call('GET', key)
  account.found, account.told = state and true or false, state or ''
  account.algorithm.read(account, state)
  return account
end

-- Judges all, and charges in memory what is to be charged. Returns how many were admitted.
local function judge(all, mode, times, refund_at)
  for _, account in ipairs(all) do
    if is_live then account.changed = account.algorithm.repair(account, now) end
    if account.algorithm.told then account.told = account.algorithm.told(account, now, refund_at, times) end
  end
  local act = ({ c = 'charge', f = 'force', r = 'refund' })[mode]
  for turn = 1, times do
    if mode == 'c' then
      for _, account in ipairs(all) do
        if account.cost > 0 and not account.algorithm.fits(account, now) then return turn - 1 end
      end
    end
    for _, account in ipairs(all) do
      if act and account.cost > 0 and account.algorithm[act](account, now, refund_at) then account.changed = true end
    end
  end
  return times
end

-- Decides, and says of every key that it is to be written or given an expiry for how long it matters. Nothing is written
-- before all of this is done, so that an error leaves all as it was.
local function judge_all(first, places, mode, times, refund_at)
  local all = {}
  for i, place in ipairs(places) do all[i] = read(KEYS[first + i - 1], ARGV[place + 3]) end
  local admitted = judge(all, mode, times, refund_at)
  for _, account in ipairs(all) do
    -- Nobody but such scripts writes here, and they always say when a key ends. One that has lost that gets it again.
    account.bare = account.found and not account.changed and mode ~= 'l' and call('PTTL', account.key) == -1
    if account.changed or account.bare then account.left = account.algorithm.fresh_at(account, now) - now end
  end
  return admitted, all
end

-- The first of these fails, if any does: a server that refuses to write refuses it all through a script.
local function write_all(all)
  for _, account in ipairs(all) do
    if account.changed then
      call('SET', account.key, account.algorithm.state(account), 'PX', expiry(account.left))
    elseif account.bare then
      call('PEXPIRE', account.key, expiry(max(account.left, account.matters)))
    end
  end
end

-- Returns what is told of a request that was given up.
local function given_up(why)
  if type(why) ~= 'table' then return -3, tostring(why) end
  if why.too_many then return -1, '' end
  if why.window_at then return -2, why.window_at end
  return -3, tostring(why.err)
end

-- Decides one request, whose reply goes after a place.
local function decide(first, places, mode, times, refund_at, replied)
  if mode == 'x' then
    reply[replied + 1] = call('DEL', KEYS[first])
    return
  end
  local all
  local good, admitted = pcall(function()
    local count
    count, all = judge_all(first, places, mode, times, refund_at)
    if mode ~= 'l' then write_all(all) end
    return count
  end)
  if not good then
    local what, about = given_up(admitted)
    reply[replied + 1], reply[replied + 2] = what, about
  else
    reply[replied + 1] = admitted
    for i, account in ipairs(all) do reply[replied + 1 + i] = account.told end
  end
end

for i = 1, laters, 3 do
  local at, refund_at = later[i], nil
  local mode, high, low, count = byte(plan, at, at + 3)
  at = at + 4
  -- `r`
  if mode == 114 then refund_at, at = unpack_words('<d', plan, at) end
  local places = {}
  for place = 1, count do
    local word_high, word_low = byte(plan, at, at + 1)
    places[place], at = word_high * 256 + word_low, at + 2
  end
  decide(later[i + 1], places, string.char(mode), high * 256 + low, refund_at, later[i + 2])
end
return reply
