-- The two that keep one time value: `bucket` and `queue`.
--
-- Words     amount  cost  cost us  cost rest  full us  full rest  room us  room rest
--           The cost in units, and in the time that so many take to come back; the longest that a clock set back may leave;
--           and how far ahead of now the time value may lie after a charge (nearer than full when the caller cannot wait).
-- States    b <us> <rest> <amount> [<debt us>]
--               a bucket is full again <us> and <rest>/<amount> microseconds after the epoch
--           q <us> <rest> <amount> <last us> <last units> [<debt us>]
--               a queue's next slot is free then; when its last slots were taken, and how many of them
--           The amount is the limit's when it was written. <debt us> is there while a force has left a debt: its time.

local function make_levels()
  local bucket, queue = {}, {}

  local function read_level(account, found, debt)
    account.us, account.rest, account.from = found[1], found[2], found[3]
    if account.rest >= account.from then never_written() end
    account.debt = debt
  end

  function bucket.read(account, state)
    local found = numbers(state, 'b', 3, 4) or { 0, 0, account.amount }
    read_level(account, found, found[4])
  end

  function queue.read(account, state)
    local found = numbers(state, 'q', 5, 6) or { 0, 0, account.amount, 0, 0 }
    read_level(account, found, found[6])
    account.last_at, account.last_units = found[4], found[5]
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

  -- Keeps a debt only while there is more than a full wait.
  local function set(account, now, us, rest, debt)
    account.us, account.rest, account.from = now + us, rest, account.amount
    account.debt = over(us, rest, account.words[5], account.words[6]) and debt or nil
  end

  function bucket.repair(account, now)
    if account.debt then
      local by = account.debt - now
      if by <= 0 then return false end
      if account.us >= by then account.us = account.us - by else account.us, account.rest = 0, 0 end
      account.debt = now
      return true
    end
    local us, rest = level(account, now)
    if not over(us, rest, account.words[5], account.words[6]) then return false end
    set(account, now, account.words[5], account.words[6], nil)
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
    return with_debt(account, format('b %d %d %d', account.us, account.rest, account.from))
  end

  function queue.state(account)
    local slot = format('q %d %d %d', account.us, account.rest, account.from)
    return with_debt(account, slot .. format(' %d %d', account.last_at, account.last_units))
  end

  function bucket.fresh_at(account)
    return account.us + (account.rest > 0 and 1 or 0)
  end

  queue.fresh_at = bucket.fresh_at

  return { b = bucket, q = queue }
end
