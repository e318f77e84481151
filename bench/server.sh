#!/usr/bin/env bash
# A request to each door beside the server's own health page, in one run: requests a second, and the server's CPU time a request,
# which is the figure that holds when the machine is busy with other things. Needs wrk; server on core 0, load on core 1.
#
# usage: bench/server.sh [--json]
set -euo pipefail
cd "$(dirname "$0")/.."
json=${1:-}
command -v wrk >/dev/null || { echo "wrk is missing: apt-get install wrk" >&2; exit 2; }
cargo build --release -q -p sekisho-cli
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

cat >"$work/policy.toml" <<'TOML'
[[policy]]
name = "bench"
key = ["ip"]
limits = ["4000000000/h"]
TOML
cat >"$work/check.lua" <<'LUA'
wrk.method = "POST"
local n = 0
request = function()
  n = (n + 7919) % 10000
  return wrk.format("POST", "/v1/check", nil, '{"limit":"1000000/h","key":"key-' .. n .. '"}')
end
LUA

on0=() on1=()
if command -v taskset >/dev/null; then on0=(taskset -c 0) on1=(taskset -c 1); fi
"${on0[@]}" target/release/sekisho serve -c "$work/policy.toml" --listen 127.0.0.1:0 >"$work/out" &
server=$!
for _ in $(seq 100); do grep -q '^listening' "$work/out" && break; sleep 0.05; done
url=$(sed -n 's/^listening on \(http:[^;]*\);.*/\1/p' "$work/out")
[ -n "$url" ] || { echo "the server did not start" >&2; exit 1; }

ticks=$(getconf CLK_TCK)
cpu() { awk '{print $14 + $15}' "/proc/$server/stat"; }
# measure PATH [SCRIPT]: prints "requests_per_second cpu_us_per_request"
measure() {
  local before after
  before=$(cpu)
  "${on1[@]}" wrk -t1 -c32 -d3s ${2:+-s "$2"} "$url$1" >"$work/wrk"
  after=$(cpu)
  if grep -q 'Non-2xx' "$work/wrk"; then echo "$1 answered an error" >&2; cat "$work/wrk" >&2; exit 1; fi
  awk -v t="$((after - before))" -v hz="$ticks" \
    '/requests in/ {n = $1} /Requests\/sec/ {r = $2} END {printf "%.0f %.2f\n", r, t / hz * 1e6 / n}' "$work/wrk"
}

measure /healthz >/dev/null # warms up
for round in 1 2 3 4 5; do
  measure /healthz >>"$work/healthz"
  measure /auth >>"$work/auth"
  measure /v1/check "$work/check.lua" >>"$work/check"
done
median() { sort -n -k2 "$1" | sed -n 3p; }
read -r _ base < <(median "$work/healthz")
[ "$json" = --json ] || printf '%-32s %12s %14s %8s\n' "median of 5, one core" "requests/s" "CPU us/request" "ratio"
for row in healthz auth check; do
  read -r rate us < <(median "$work/$row")
  ratio=$(awk -v a="$us" -v b="$base" 'BEGIN {printf "%.2f", a / b}')
  if [ "$json" = --json ]; then
    printf '{"door":"%s","requests_per_second":%s,"cpu_us_per_request":%s,"ratio_to_healthz":%s}\n' "$row" "$rate" "$us" "$ratio"
  else
    case $row in healthz) name="/healthz" ;; auth) name="/auth" ;; check) name="/v1/check, 10,000 keys" ;; esac
    printf '%-32s %12s %14s %8s\n' "$name" "$rate" "$us" "$ratio"
  fi
done
