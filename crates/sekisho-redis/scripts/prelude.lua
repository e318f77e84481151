-- What every algorithm needs: whole numbers that stay whole, and how a state is read.
--
-- Numbers   Lua has doubles, exact to 2^53. A time that is no whole number of microseconds is therefore two numbers, whole
--           microseconds and a rest in 1/amount of one, and two such times are only added and compared, never multiplied.
--           Products of counts and times are made in pieces of 24 bits. Who calls keeps amounts to 2^51, and each time, with
--           all that may be added to it, below 2^53. Then no number that is stored or told goes beyond 2^53.
-- Closures  A script runs from its first line at each call, and making its functions costs more than deciding one bucket. So
--           they are made in `make_...` functions, which are called when one of theirs is first needed.

local floor, fmod, max, min = math.floor, math.fmod, math.max, math.min
-- The longest debt in microseconds: a hundred years.
local LONGEST = 36500 * 86400000000

local carried, over, converted, at_most, never_written, numbers, sum

local function make_tools()
  -- Carries the whole microseconds of a rest. A quotient of numbers below 2^53 never rounds up to the next whole one.
  function carried(us, rest, amount)
    local whole = floor(rest / amount)
    return us + whole, rest - whole * amount
  end

  -- Whether one time is longer than another of the same amount.
  function over(us, rest, than_us, than_rest)
    return us > than_us or (us == than_us and rest > than_rest)
  end

  -- Returns (us * from + rest) / to: the same usage, under another amount. The product may not fit, so it is made by doubling,
  -- one bit of us at a time. What is longer than the longest debt comes out as one microsecond longer.
  function converted(us, rest, from, to)
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
      if out_us > LONGEST then return LONGEST + 1, 0 end
      bit = bit / 2
    end
    local more_us, more_rest = carried(0, rest, to)
    return carried(out_us + more_us, out_rest + more_rest, to)
  end

  local PIECE = 2 ^ 24

  local function pieces(n)
    local rest = floor(n / PIECE)
    return n - rest * PIECE, rest % PIECE, floor(rest / PIECE)
  end

  -- Returns the five pieces of a * b, the smallest first.
  local function product(a, b)
    local a0, a1, a2 = pieces(a)
    local b0, b1, b2 = pieces(b)
    local out = { a0 * b0, a0 * b1 + a1 * b0, a0 * b2 + a1 * b1 + a2 * b0, a1 * b2 + a2 * b1, a2 * b2 }
    for i = 1, 4 do
      local carry = floor(out[i] / PIECE)
      out[i], out[i + 1] = out[i] - carry * PIECE, out[i + 1] + carry
    end
    return out
  end

  -- Whether a * b <= c * d, exactly.
  function at_most(a, b, c, d)
    if a * b < EXACT and c * d < EXACT then return a * b <= c * d end
    local left, right = product(a, b), product(c, d)
    for i = 5, 1, -1 do
      if left[i] ~= right[i] then return left[i] < right[i] end
    end
    return true
  end

  function never_written()
    error('a key holds what this script never wrote', 0)
  end

  -- Returns the numbers behind the letter of a state; nothing where there is none or it is another algorithm's. Anything else
  -- is an error, and comes before all writing.
  function numbers(state, letter, least, most)
    if not state or state:sub(1, 1) ~= letter then return nil end
    local out, at = {}, 2
    while at <= #state do
      local _, last, digits = state:find('^ (%d+)', at)
      local number = digits and tonumber(digits)
      if not number or number >= EXACT then never_written() end
      out[#out + 1], at = number, last + 1
    end
    if #out < least or #out > most then never_written() end
    return out
  end

  -- A sum of units. Beyond 2^53 it would not be exact, so the call is given up, with nothing written.
  function sum(a, b)
    if a + b >= EXACT then error({ too_many = true }, 0) end
    return a + b
  end
end
