#!/usr/bin/env bash
# The doors beside peers that speak the same, in one run: requests a second, and the server's CPU time a request, which is the
# figure that holds when the machine is busy with other things. The server has core 0, the load core 1; medians of five rounds,
# ours and the peer's in turn. Needs wrk and redis-benchmark, and of the peers those that there are: throttlecrab-server
# (`cargo install throttlecrab-server`, which wants protoc) on PATH or named in SEKISHO_THROTTLECRAB, and the module redis-cell
# named in SEKISHO_REDIS_CELL (./test builds it under target/tools).
#
# usage: bench/doors.sh [--json]
set -euo pipefail
cd "$(dirname "$0")/.."
json=${1:-}
for tool in wrk redis-benchmark redis-server; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install wrk redis" >&2; exit 2; }
done
target=${CARGO_TARGET_DIR:-target}
cargo build --release -q -p sekisho-cli
crab=${SEKISHO_THROTTLECRAB:-$(command -v throttlecrab-server || true)}
cell=${SEKISHO_REDIS_CELL:-$target/tools/redis-cell/target/release/libredis_cell.so}
work=$(mktemp -d)
declare -A server=()
trap 'kill "${server[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
on0=() on1=()
if command -v taskset >/dev/null; then on0=(taskset -c 0) on1=(taskset -c 1); fi
rounds=${BENCH_ROUNDS:-5}
port=$((20000 + RANDOM % 10000))
resp=$port http=$((port + 1)) theirs=$((port + 2)) crab_http=$((port + 3))

cat >"$work/sekisho.toml" <<TOML
[listen]
http = "127.0.0.1:$http"
resp = "127.0.0.1:$resp"
[[policy]]
name = "bench"
key = ["ip"]
limits = ["4000000000/h"]
TOML
"${on0[@]}" "$target/release/sekisho" serve -c "$work/sekisho.toml" >"$work/out" &
server[ours]=$!
if [ -f "$cell" ]; then
  "${on0[@]}" redis-server --bind 127.0.0.1 --port "$theirs" --save "" --daemonize no \
    --dir "$work" --loadmodule "$(realpath "$cell")" >"$work/redis" &
  server[cell]=$!
else
  echo "no redis-cell: its rows are left out" >&2
fi
if [ -n "$crab" ]; then
  "${on0[@]}" "$crab" --http --http-host 127.0.0.1 --http-port "$crab_http" --log-level error >"$work/crab" 2>&1 &
  server[crab]=$!
else
  echo "no throttlecrab-server: its row is left out" >&2
fi
for place in "$resp" "$http" ${server[cell]:+"$theirs"} ${server[crab]:+"$crab_http"}; do
  for _ in $(seq 100); do (: >"/dev/tcp/127.0.0.1/$place") 2>/dev/null && break; sleep 0.05; done
  (: >"/dev/tcp/127.0.0.1/$place") 2>/dev/null || { echo "nothing listens on port $place" >&2; cat "$work"/* >&2; exit 1; }
done

cat >"$work/check.lua" <<'LUA'
wrk.method = "POST"
local n = 0
request = function()
  n = (n + 7919) % 10000
  return wrk.format("POST", "/v1/check", nil, '{"limit":"1000000/h","key":"key-' .. n .. '"}')
end
LUA
cat >"$work/throttle.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = (n + 7919) % 10000
  return wrk.format("POST", "/throttle", nil,
    '{"key":"key-' .. n .. '","max_burst":1000000,"count_per_period":1000000,"period":3600}')
end
LUA

ticks=$(getconf CLK_TCK)
cpu() { awk '{print $14 + $15}' "/proc/${server[$1]}/stat"; }
# http ROW SERVER PORT PATH [SCRIPT]: appends "requests_per_second cpu_us_per_request p99".
http() {
  local before after
  before=$(cpu "$2")
  "${on1[@]}" wrk -t1 -c32 -d2s --latency ${5:+-s "$5"} "http://127.0.0.1:$3$4" >"$work/wrk"
  after=$(cpu "$2")
  if grep -q 'Non-2xx' "$work/wrk"; then echo "$1 answered an error" >&2; cat "$work/wrk" >&2; exit 1; fi
  awk -v t="$((after - before))" -v hz="$ticks" \
    '/requests in/ {n = $1} /Requests\/sec/ {r = $2} END {printf "%.0f %.2f\n", r, t / hz * 1e6 / n}' \
    "$work/wrk" >>"$work/row.$1"
}
# pipelined ROW SERVER PORT COMMANDS_A_WRITE
pipelined() {
  local before after count=$((200000 * $4 / ($4 + 3)))
  before=$(cpu "$2")
  "${on1[@]}" redis-benchmark -p "$3" -c 50 -n "$count" -P "$4" -r 1000000 --csv \
    CL.THROTTLE key:__rand_int__ 100 1000000 3600 2>/dev/null | tail -1 | tr -d '"' >"$work/csv"
  after=$(cpu "$2")
  awk -F, -v t="$((after - before))" -v hz="$ticks" -v n="$count" \
    '{printf "%.0f %.2f\n", $(NF > 2 ? NF - 6 : 2), t / hz * 1e6 / n}' "$work/csv" >>"$work/row.$1"
}

for round in $(seq 0 "$rounds"); do
  http healthz ours "$http" /healthz
  http auth ours "$http" /auth
  http check ours "$http" /v1/check "$work/check.lua"
  if [ -n "${server[crab]:-}" ]; then http crab crab "$crab_http" /throttle "$work/throttle.lua"; fi
  for many in 1 16 64; do
    pipelined "resp$many" ours "$resp" "$many"
    if [ -n "${server[cell]:-}" ]; then pipelined "cell$many" cell "$theirs" "$many"; fi
  done
  # The first one warms up.
  if [ "$round" = 0 ]; then rm "$work"/row.*; fi
done
median() { sort -n -k2 "$work/row.$1" | sed -n "$(((rounds + 1) / 2))p"; }
[ "$json" = --json ] || printf '%-44s %10s %8s %8s %8s %8s\n' "" "requests/s" "CPU us" "other" "ratio" "target"
# row NAME OURS OTHER TARGET
row() {
  local rate us other=- ratio=-
  read -r rate us < <(median "$2")
  if [ -f "$work/row.$3" ]; then
    read -r _ other < <(median "$3")
    ratio=$(awk -v a="$us" -v b="$other" 'BEGIN {printf "%.2f", a / b}')
  fi
  if [ "$json" = --json ]; then
    printf '{"row":"%s","requests_per_second":%s,"cpu_us":%s,"other_cpu_us":"%s","ratio":"%s","target":"%s"}\n' \
      "$1" "$rate" "$us" "$other" "$ratio" "$4"
  else
    printf '%-44s %10s %8s %8s %8s %8s\n' "$1" "$rate" "$us" "$other" "$ratio" "$4"
  fi
}
row "/healthz" healthz none -
row "/auth / healthz" auth healthz -
row "/v1/check, 10,000 keys / throttlecrab" check crab "<= 1.0"
read -r _ a < <(median check); read -r _ b < <(median healthz)
above=$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.2f", a - b}')
if [ "$json" = --json ]; then
  printf '{"row":"/v1/check above /healthz","cpu_us":%s,"target":"<= 2"}\n' "$above"
else
  printf '%-44s %10s %8s %8s %8s %8s\n' "/v1/check above /healthz" - "$above" - - "<= 2"
fi
row "CL.THROTTLE, 1 a write / redis-cell" resp1 cell1 "<= 1.0"
row "CL.THROTTLE, 16 a write / redis-cell" resp16 cell16 "<= 0.7"
row "CL.THROTTLE, 64 a write / redis-cell" resp64 cell64 "<= 0.7"
