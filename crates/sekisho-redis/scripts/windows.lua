-- Windows: `window` (fixed and calendar ones), `anchored` and `sliding`.
--
-- Words     amount  cost  period us
--           A calendar window has, in place of the period, pairs of a start and an end: the windows that the caller knows.
--           When the one that is needed is not among them, the caller is asked for it.
-- States    w <start us> <used>                  a window and the units used in it
--           a <start us> <used>                  the same, begun by its first request
--           s <start us> <previous> <current>    a window, the units used in the one before it and in it

local function make_windows()
  -- Returns start and end of the window that holds `at`.
  local function window_of(account, at)
    local words = account.words
    if not account.calendar then
      local start = at - fmod(at, words[3])
      return start, start + words[3]
    end
    for i = 3, #words, 2 do
      if words[i] <= at and at < words[i + 1] then return words[i], words[i + 1] end
    end
    error({ window_at = at }, 0)
  end

  local window = {}

  function window.read(account, state)
    local found = numbers(state, 'w', 2, 2) or { 0, 0 }
    account.start, account.used = found[1], found[2]
  end

  function window.repair(account, now)
    if account.start <= now then return false end
    account.start = window_of(account, now)
    return true
  end

  -- The open window is the newer of the state's and the one that holds now.
  function window.open(account, now)
    local start
    start, account.ends = window_of(account, max(now, account.start))
    return start, start > account.start and 0 or account.used
  end

  function window.fits(account, now)
    local _, used = window.open(account, now)
    return used + account.cost <= account.amount
  end

  function window.charge(account, now)
    local start, used = window.open(account, now)
    account.start, account.used = start, sum(used, account.cost)
    return true
  end

  window.force = window.charge

  function window.refund(account, now, at)
    local start, used = window.open(account, now)
    if used == 0 or at < start or at >= account.ends then return false end
    account.start, account.used = start, max(0, used - account.cost)
    return true
  end

  function window.state(account)
    return format('w %d %d', account.start, account.used)
  end

  function window.fresh_at(account, now)
    if account.used == 0 then return 0 end
    local _, ends = window_of(account, max(now, account.start))
    return ends
  end

  local anchored = {}

  function anchored.read(account, state)
    local found = numbers(state, 'a', 2, 2) or { 0, 0 }
    account.start, account.used = found[1], found[2]
  end

  function anchored.repair(account, now)
    if account.start <= now then return false end
    account.start = now
    return true
  end

  local function is_open(account, now)
    return account.used > 0 and now < account.start + account.words[3]
  end

  function anchored.fits(account, now)
    return not is_open(account, now) or account.used + account.cost <= account.amount
  end

  function anchored.charge(account, now)
    if not is_open(account, now) then account.start, account.used = now, 0 end
    account.used = sum(account.used, account.cost)
    return true
  end

  anchored.force = anchored.charge

  function anchored.refund(account, now, at)
    if not is_open(account, now) or at < account.start or at >= account.start + account.words[3] then return false end
    account.used = max(0, account.used - account.cost)
    return true
  end

  function anchored.state(account)
    return format('a %d %d', account.start, account.used)
  end

  function anchored.fresh_at(account)
    return account.used == 0 and 0 or account.start + account.words[3]
  end

  local sliding = {}

  function sliding.read(account, state)
    local found = numbers(state, 's', 3, 3) or { 0, 0, 0 }
    account.start = found[1] - fmod(found[1], account.words[3])
    account.previous, account.current = found[2], found[3]
  end

  function sliding.repair(account, now)
    if account.start <= now then return false end
    account.start = now - fmod(now, account.words[3])
    return true
  end

  -- Returns start, previous and current as they are at now. A late request counts in the window that is open.
  function sliding.open(account, now)
    local period = account.words[3]
    local start = max(account.start, now - fmod(now, period))
    if start == account.start then return start, account.previous, account.current end
    if start == account.start + period then return start, account.current, 0 end
    return start, 0, 0
  end

  -- previous * (P - e) / P + current + cost <= amount, without dividing.
  function sliding.fits(account, now)
    local period = account.words[3]
    local start, previous, current = sliding.open(account, now)
    local room = account.amount - account.cost - current
    return room >= 0 and at_most(previous, period - max(0, now - start), room, period)
  end

  function sliding.charge(account, now)
    local start, previous, current = sliding.open(account, now)
    account.start, account.previous, account.current = start, previous, sum(current, account.cost)
    return true
  end

  sliding.force = sliding.charge

  function sliding.refund(account, now, at)
    local start, previous, current = sliding.open(account, now)
    if current == 0 or at < start or at >= start + account.words[3] then return false end
    account.start, account.previous, account.current = start, previous, max(0, current - account.cost)
    return true
  end

  function sliding.state(account)
    return format('s %d %d %d', account.start, account.previous, account.current)
  end

  function sliding.fresh_at(account)
    if account.current > 0 then return account.start + 2 * account.words[3] end
    return account.previous > 0 and account.start + account.words[3] or 0
  end

  return { w = window, k = window, a = anchored, s = sliding }
end
