-- The sliding log: the time and units of every request of the last period.
--
-- Words     amount  cost  period us  resolution us, 0 where there is none
-- State     l <units before>, then for each entry <us> <units>, each number of 16 digits
--           Strictly ascending in time. Units are running sums, so that what lies between two entries is one subtraction, and
--           an entry is found by halving: a log of any length is judged by looking at a few of its entries.

local function make_log()
  local HEAD, RECORD = 18, 34
  local log = {}

  local function record(at, units)
    return format(' %016d %016d', at, units)
  end

  -- Takes the text of a log apart no further than its first number.
  local function set_text(account, text)
    local before = tonumber(text:sub(1, HEAD):match('^l (%d+)$') or '')
    account.text, account.count, account.before = text, (#text - HEAD) / RECORD, before
    if not before or before >= EXACT or account.count % 1 ~= 0 then never_written() end
  end

  function log.read(account, state)
    local is_log = state and state:sub(1, 1) == 'l'
    set_text(account, is_log and state or format('l %016d', 0))
  end

  -- Returns the time and the running sum of the entry at a place; before the first there is a sum only.
  local function entry(account, place)
    if place == 0 then return nil, account.before end
    local last = HEAD + place * RECORD
    local at, units = account.text:sub(last - RECORD + 1, last):match('^ (%d+) (%d+)$')
    at, units = tonumber(at or ''), tonumber(units or '')
    if not at or not units or at >= EXACT or units >= EXACT then never_written() end
    return at, units
  end

  -- Returns the first place, from `low` on, whose entry passes the test, as all after it do; or the place after the last.
  local function first_where(account, low, passes)
    local high = account.count + 1
    while low < high do
      local middle = floor((low + high) / 2)
      if passes(entry(account, middle)) then high = middle else low = middle + 1 end
    end
    return low
  end

  -- Returns the log from one place to another, and one more entry. No longer text is made than is needed: Lua walks through each.
  local function cut(account, first, last, more)
    if first == 1 and last == account.count then return account.text .. more end
    local body = account.text:sub(HEAD + (first - 1) * RECORD + 1, HEAD + last * RECORD)
    local _, before = entry(account, first - 1)
    return format('l %016d', before) .. body .. more
  end

  -- Returns the time at which a request is entered: the first multiple of the resolution that is not before it.
  local function entered(account, at)
    local resolution = account.words[4]
    local past = resolution > 0 and fmod(at, resolution) or 0
    return past == 0 and at or at - past + resolution
  end

  -- What lies after the time at which a request of now is entered meets there, where an entry may be already.
  function log.repair(account, now)
    local newest = entered(account, now)
    local later = first_where(account, 1, function(at) return at > newest end)
    if later > account.count then return false end
    local _, sum_of_all = entry(account, account.count)
    local stays = later - 1
    if stays > 0 and entry(account, stays) == newest then stays = stays - 1 end
    set_text(account, cut(account, 1, stays, record(newest, sum_of_all)))
    return true
  end

  -- Returns the time at which a request is entered, the units that are younger than a period when it is judged, and the place of
  -- the first of them. It is judged when it comes. One that would be entered before the newest entry is late: it is entered
  -- there, and judged when the first is that is entered there: right after one resolution before it.
  local function live(account, now)
    local newest, sum_of_all = entry(account, account.count)
    newest = newest or 0
    local judged, period = max(now, newest - account.words[4]), account.words[3]
    local first = first_where(account, 1, function(time) return judged < time + period end)
    local _, before = entry(account, first - 1)
    if before > sum_of_all then never_written() end
    return max(entered(account, now), newest), sum_of_all - before, first
  end

  -- Takes so many units off the sums from a place on, and the entry at that place away if it has no units left.
  local function lowered(account, first, by)
    local _, before = entry(account, first - 1)
    local out = { account.text:sub(1, HEAD + (first - 1) * RECORD) }
    for place = first, account.count do
      local at, units = entry(account, place)
      if place > first or units - by > before then out[#out + 1] = record(at, units - by) end
    end
    return table.concat(out)
  end

  function log.fits(account, now)
    local _, units = live(account, now)
    return units + account.cost <= account.amount
  end

  function log.charge(account, now)
    local at, units, first = live(account, now)
    local _, before = entry(account, first - 1)
    if before + sum(units, account.cost) >= EXACT then
      -- The sums begin anew.
      set_text(account, cut(account, first, account.count, ''))
      first, account.before = 1, 0
      set_text(account, format('l %016d', 0) .. lowered(account, 1, before):sub(HEAD + 1))
      before = 0
    end
    local stays = entry(account, account.count) == at and account.count - 1 or account.count
    set_text(account, cut(account, first, stays, record(at, before + units + account.cost)))
    return true
  end

  log.force = log.charge

  -- Returns the place of the entry of a time, if it has not left.
  local function place_of(account, first, at)
    local place = first_where(account, first, function(time) return time >= at end)
    if place <= account.count and entry(account, place) == at then return place end
  end

  function log.refund(account, now, at)
    local _, _, first = live(account, now)
    local place = place_of(account, first, entered(account, at))
    if not place then return false end
    local _, before = entry(account, place - 1)
    local _, units = entry(account, place)
    set_text(account, lowered(account, place, min(account.cost, units - before)))
    set_text(account, cut(account, first, account.count, ''))
    return true
  end

  -- Returns a shorter log of which the same is said: without entries between those at which something happens. Their units
  -- count with the next one that is kept.
  function log.told(account, now, refund_at, times)
    if account.count == 0 then return account.text end
    local _, units, first = live(account, now)
    if first > account.count then return format('l %016d', 0) end
    local _, before = entry(account, first - 1)
    local keep = { [first] = true, [account.count] = true }
    local back = 0
    local place = refund_at and place_of(account, first, entered(account, refund_at))
    if place then
      local _, sum_before = entry(account, place - 1)
      local _, sum_then = entry(account, place)
      back = min(account.cost, sum_then - sum_before)
      keep[place - 1], keep[place], keep[place + 1] = true, true, true
    end
    -- How many units must leave: for the cost, and for one more; after each of those that come at once, and after the refund.
    local excess = units - account.amount
    local function keeps(wanted)
      if wanted > 0 and wanted <= units then
        keep[first_where(account, first, function(_, sum_then) return sum_then - before >= wanted end)] = true
      end
    end
    keeps(excess + 1 - back)
    for turn = 0, times do
      keeps(excess + (turn + 1) * account.cost)
      keeps(excess + turn * account.cost + 1)
    end
    local places = {}
    for kept in pairs(keep) do
      if kept >= first and kept <= account.count then places[#places + 1] = kept end
    end
    table.sort(places)
    local out = { format('l %016d', before) }
    for i, kept in ipairs(places) do out[i + 1] = record(entry(account, kept)) end
    return table.concat(out)
  end

  function log.state(account)
    return account.text
  end

  function log.fresh_at(account)
    if account.count == 0 then return 0 end
    return entry(account, account.count) + account.words[3]
  end

  return { l = log }
end
