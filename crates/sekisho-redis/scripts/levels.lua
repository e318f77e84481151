-- The two that keep one time value: `bucket` and `queue`.
--
-- Words     amount  cost  cost us  cost rest  full us  full rest  room us  room rest  burst  period us
--           The cost in units, and in the time that so many take to come back; how far ahead of now the time value lies when
--           all is used; and how far it may lie after a charge (nearer than full when the caller cannot wait).
-- States    b <us> <rest> <amount> [<burst> [<debt us>]]
--               a bucket is full again <us> and <rest>/<amount> microseconds after the epoch
--           q <us> <rest> <amount> <burst> <last us> <last units> [<debt us>]
--               a queue's next slot is free then; when its last slots were taken, and how many of them
--           Amount and burst are the limit's when it was written: who has other numbers needs them to tell how much is used, and
--           whether a clock was set back. A bucket's burst is left out when it is the amount. <debt us> is there while more is
--           used than the burst: since when.

local function make_levels()
  local bucket, queue = {}, {}

  local function read_level(account, found, least_burst, burst, debt)
    account.us, account.rest, account.from, account.from_burst = found[1], found[2], found[3], burst
    if account.rest >= account.from or burst < least_burst then never_written() end
    account.debt = debt
  end

  function bucket.read(account, state)
    local found = numbers(state, 'b', 3, 5) or { 0, 0, account.amount, account.words[9] }
    read_level(account, found, 1, found[4] or found[3], found[5])
  end

  function queue.read(account, state)
    local found = numbers(state, 'q', 6, 7) or { 0, 0, account.amount, account.words[9], 0, 0 }
    read_level(account, found, 0, found[4], found[7])
    account.last_at, account.last_units = found[5], found[6]
  end

  -- Returns how far ahead of now the time value is, under the amount of now. Microseconds before now are past, whatever
  -- their rest.
  local function level(account, now)
    if account.us < now then return 0, 0 end
    return converted(account.us - now, account.rest, account.from, account.amount)
  end

  -- The same for a charge, which makes no debt longer than the longest where the amount has changed.
  local function level_to_charge(account, now)
    local us, rest = level(account, now)
    if account.from ~= account.amount and over(us, rest, LONGEST, 0) then return LONGEST, 0 end
    return us, rest
  end

  -- Writes under the numbers of now. Keeps a debt only while there is more than a full wait: of a force, or of what was used
  -- under other numbers.
  local function set(account, now, us, rest, debt)
    account.us, account.rest, account.from, account.from_burst = now + us, rest, account.amount, account.words[9]
    account.debt = over(us, rest, account.words[5], account.words[6]) and (debt or now) or nil
  end

  -- Returns the full wait under the numbers that the state was written with. A queue has one in service besides.
  local function full_then(account)
    local in_service = account.algorithm == queue and 1 or 0
    if account.from == account.amount and account.from_burst == account.words[9] then
      return account.words[5], account.words[6]
    end
    return converted(account.words[10], 0, account.from_burst + in_service, account.from)
  end

  function bucket.repair(account, now)
    if account.debt then
      local by = account.debt - now
      if by <= 0 then return false end
      if account.us >= by then account.us = account.us - by else account.us, account.rest = 0, 0 end
      account.debt = now
      return true
    end
    local full_us, full_rest = full_then(account)
    if account.us < now or not over(account.us - now, account.rest, full_us, full_rest) then return false end
    account.us, account.rest = now + full_us, full_rest
    return true
  end

  -- What is next now is no longer what any charge made it.
  function queue.repair(account, now)
    local repaired = bucket.repair(account, now)
    if repaired then account.last_units = 0 end
    return repaired
  end

  function bucket.fits(account, now)
    local us, rest = level(account, now)
    us, rest = carried(us + account.words[3], rest + account.words[4], account.amount)
    return not over(us, rest, account.words[7], account.words[8])
  end

  queue.fits = bucket.fits

  function bucket.charge(account, now)
    local us, rest = level_to_charge(account, now)
    us, rest = carried(us + account.words[3], rest + account.words[4], account.amount)
    set(account, now, us, rest, nil)
    return true
  end

  function bucket.force(account, now)
    local before_us, before_rest = level_to_charge(account, now)
    local us, rest = LONGEST, 0
    if over(before_us, before_rest, us, rest) then
      us, rest = before_us, before_rest
    else
      local sum_us, sum_rest = carried(before_us + account.words[3], before_rest + account.words[4], account.amount)
      if not over(sum_us, sum_rest, us, rest) then us, rest = sum_us, sum_rest end
    end
    set(account, now, us, rest, now)
    return true
  end

  function bucket.refund(account, now)
    local us, rest = level_to_charge(account, now)
    if us == 0 and rest == 0 then return false end
    us, rest = us - account.words[3], rest - account.words[4]
    if rest < 0 then us, rest = us - 1, rest + account.amount end
    if us < 0 then us, rest = 0, 0 end
    set(account, now, us, rest, account.debt)
    return true
  end

  -- Notes whose the last slots are.
  local function remember(account, now)
    local before = account.last_at == now and account.last_units or 0
    account.last_at, account.last_units = now, sum(before, account.cost)
  end

  function queue.charge(account, now)
    remember(account, now)
    return bucket.charge(account, now)
  end

  function queue.force(account, now)
    remember(account, now)
    return bucket.force(account, now)
  end

  -- Only the last slots can be given back: those before them are no longer next.
  function queue.refund(account, now, at)
    if at ~= account.last_at or account.cost > account.last_units then return false end
    if not bucket.refund(account, now) then return false end
    account.last_units = account.last_units - account.cost
    return true
  end

  local function with_debt(account, text)
    return account.debt and text .. format(' %d', account.debt) or text
  end

  function bucket.state(account)
    local text = format('b %d %d %d', account.us, account.rest, account.from)
    if account.debt or account.from_burst ~= account.from then text = text .. format(' %d', account.from_burst) end
    return with_debt(account, text)
  end

  function queue.state(account)
    local slot = format('q %d %d %d %d', account.us, account.rest, account.from, account.from_burst)
    return with_debt(account, slot .. format(' %d %d', account.last_at, account.last_units))
  end

  function bucket.fresh_at(account)
    return account.us + (account.rest > 0 and 1 or 0)
  end

  queue.fresh_at = bucket.fresh_at

  return { b = bucket, q = queue }
end
