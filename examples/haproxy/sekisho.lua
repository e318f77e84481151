-- Asks Sekisho whether a request may pass. An answer other than 200 goes to the client as it is; without an answer
-- `txn.sekisho` is `undecided`, and haproxy.cfg says what happens.

-- Where Sekisho listens; for a unix socket `unix@/run/sekisho.sock`.
local address = "127.0.0.1:8080"
-- How long its answer is waited for, in milliseconds. With `[listen.auth] hold` it is longer than that.
local patience = 200

local function first(headers, name)
  return headers[name] and headers[name][0]
end

core.register_action("sekisho", { "http-req" }, function(txn)
  -- Nothing of the client's own goes along: it can name no address, method, path or host. A header that a policy counts by is
  -- added here, as in ["x-api-key"] = { txn.sf:req_hdr("x-api-key") }.
  local answer = core.httpclient():get{
    url = "http://sekisho/auth",
    dst = address,
    timeout = patience,
    headers = {
      ["x-real-ip"] = { txn.sf:src() },
      ["x-original-method"] = { txn.sf:method() },
      ["x-original-uri"] = { txn.sf:pathq() },
      ["x-original-host"] = { txn.sf:req_hdr("host") },
    },
  }
  local status = answer and tonumber(answer.status) or 0
  -- Without an answer there is one of HAProxy's own. Sekisho's refusals say `no-store`.
  local own = status >= 500 and first(answer.headers, "cache-control") ~= "no-store"
  if status == 200 then
    txn:set_var("txn.sekisho", "allowed")
    for variable, name in pairs({ ["txn.ratelimit"] = "ratelimit", ["txn.ratelimit_policy"] = "ratelimit-policy" }) do
      local value = first(answer.headers, name)
      if value then txn:set_var(variable, value) end
    end
  elseif status >= 400 and not own then
    local reply = txn:reply{ status = status, body = answer.body }
    for name, values in pairs(answer.headers) do
      if name ~= "connection" and name ~= "content-length" and name ~= "date" then
        for _, value in pairs(values) do reply:add_header(name, value) end
      end
    end
    txn:done(reply)
  else
    txn:set_var("txn.sekisho", "undecided")
  end
end)
