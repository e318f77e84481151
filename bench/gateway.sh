#!/usr/bin/env bash
# The gateway beside itself without a limit, and beside nginx's proxy_pass with keep-alive, all in front of the same small site, in one
# run. The figure that holds when the machine is busy is the CPU time of each server a request. Needs wrk and nginx; the server under
# test on core 0, site and load on core 1.
#
# usage: bench/gateway.sh [--json]
set -euo pipefail
cd "$(dirname "$0")/.."
json=${1:-}
nginx=${SEKISHO_NGINX:-$(command -v nginx || true)}
command -v wrk >/dev/null || { echo "wrk is missing: apt-get install wrk" >&2; exit 2; }
[ -n "$nginx" ] || { echo "nginx is missing: apt-get install nginx, or name it in SEKISHO_NGINX" >&2; exit 2; }
cargo build --release -q -p sekisho-cli
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$work"' EXIT
on0=() on1=()
if command -v taskset >/dev/null; then on0=(taskset -c 0) on1=(taskset -c 1); fi
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# The site: nginx with a fixed answer. The peer: nginx with keep-alive to it.
site=$(free_port) peer=$(free_port)
conf() { # conf NAME BODY
  cat >"$work/$1.conf" <<CONF
worker_processes 1; daemon off; master_process off; pid $work/$1.pid; error_log $work/$1.log;
events { worker_connections 512; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path $work/b; proxy_temp_path $work/p;
  fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s; $2 }
CONF
}
conf site "server { listen 127.0.0.1:$site; location / { return 200 'hello'; } }"
conf peer "upstream site { server 127.0.0.1:$site; keepalive 64; keepalive_requests 100000000; }
  server { listen 127.0.0.1:$peer; location / { proxy_pass http://site; proxy_http_version 1.1; proxy_set_header Connection ''; } }"
"${on1[@]}" "$nginx" -c "$work/site.conf" & pids+=($!)
"${on0[@]}" "$nginx" -c "$work/peer.conf" & pids+=($!); peer_pid=$!

# gateway NAME LIMIT: starts one and sets url_NAME and pid_NAME
gateway() {
  "${on0[@]}" target/release/sekisho proxy --to "http://127.0.0.1:$site" --limit "$2" --listen 127.0.0.1:0 >"$work/$1" 2>&1 & pids+=($!)
  printf -v "pid_$1" %s "$!"
  for _ in $(seq 100); do grep -q '^gateway' "$work/$1" && break; sleep 0.05; done
  printf -v "url_$1" %s "$(sed -n 's/^gateway on \(http:[^;]*\);.*/\1/p' "$work/$1")"
}
gateway open unlimited
gateway limited 4000000000/h

ticks=$(getconf CLK_TCK)
cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; }
measure() { # measure PID URL
  local before after
  before=$(cpu "$1")
  "${on1[@]}" wrk -t1 -c32 -d3s "$2/" >"$work/wrk"
  after=$(cpu "$1")
  if grep -q 'Non-2xx' "$work/wrk"; then echo "$2 answered an error" >&2; cat "$work/wrk" >&2; exit 1; fi
  awk -v t="$((after - before))" -v hz="$ticks" \
    '/requests in/ {n = $1} /Requests\/sec/ {r = $2} END {printf "%.0f %.2f\n", r, t / hz * 1e6 / n}' "$work/wrk"
}
measure "$peer_pid" "http://127.0.0.1:$peer" >/dev/null # warms up
for _ in 1 2 3 4 5; do
  measure "$peer_pid" "http://127.0.0.1:$peer" >>"$work/row-nginx"
  measure "$pid_open" "$url_open" >>"$work/row-open"
  measure "$pid_limited" "$url_limited" >>"$work/row-limited"
done
median() { sort -n -k2 "$1" | sed -n 3p; }
read -r _ base < <(median "$work/row-nginx")
[ "$json" = --json ] || printf '%-36s %12s %14s %9s\n' "median of 5, one core" "requests/s" "CPU us/request" "to nginx"
for row in nginx open limited; do
  read -r rate us < <(median "$work/row-$row")
  ratio=$(awk -v a="$us" -v b="$base" 'BEGIN {printf "%.2f", a / b}')
  case $row in nginx) name="nginx proxy_pass" ;; open) name="gateway, unlimited" ;; limited) name="gateway, one limit by address" ;; esac
  if [ "$json" = --json ]; then
    printf '{"name":"%s","requests_per_second":%s,"cpu_us_per_request":%s,"ratio_to_nginx":%s}\n' "$name" "$rate" "$us" "$ratio"
  else
    printf '%-36s %12s %14s %9s\n' "$name" "$rate" "$us" "$ratio"
  fi
done
