#!/usr/bin/env bash
# Counts the instructions of one decision of each kind, under callgrind, and holds them to bench/instructions.txt.
#
#   bench/instructions.sh            prints them beside what is written down
#   bench/instructions.sh --check    fails if one takes more than is written down, and a tenth
#   bench/instructions.sh --write    writes them down
#   bench/instructions.sh --json     prints them for machines
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-}
known=bench/instructions.txt
command -v valgrind >/dev/null || { echo "no valgrind on PATH (package valgrind)" >&2; exit 1; }

program=$(cargo bench --quiet --package sekisho --bench instructions --no-run --message-format json |
  sed -nE 's/.*"executable":"([^"]*instructions[^"]*)".*/\1/p' | tail -n 1)
[ -x "$program" ] || { echo "the program was not built" >&2; exit 1; }

# count CASE CALLS: the instructions of a whole run.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
    sed -nE 's/.*Collected : ([0-9]+).*/\1/p'
}

failed=0
written=
json=
for case in $("$program"); do
  first=$(count "$case" 1000)
  second=$(count "$case" 6000)
  each=$(((second - first) / 5000))
  before=$(awk -v name="$case" '$1 == name { print $2 }' "$known" 2>/dev/null || true)
  written+="$case $each"$'\n'
  json+="${json:+,}{\"case\":\"$case\",\"instructions\":$each,\"before\":${before:-null}}"
  [ "$mode" = --json ] || printf '%-22s %6d  (written down: %s)\n' "$case" "$each" "${before:-nothing}"
  if [ -n "$before" ] && [ $((10 * each)) -gt $((11 * before)) ]; then
    echo "$case takes $each instructions; $before were written down" >&2
    failed=1
  fi
done

case "$mode" in
  --json) echo "[$json]" ;;
  --write) printf '%s' "$written" >"$known" ;;
  --check) exit "$failed" ;;
esac
