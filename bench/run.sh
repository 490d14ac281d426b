#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmarks, all or some by name; each prints the machine first, and what it prints is kept in bench/results/.
# Options after the name go to bench/peers.py or bench/memory.py: "peers --continue" measures what is missing yet.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/penstock
bin=build/release/bin

machine() {
  local flag best=none
  for flag in avx2 avx512f avx512_bf16 amx_bf16; do grep -qw "$flag" /proc/cpuinfo && best=$flag; done
  printf '%s, %s cores, %s\n\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$best"
}

generators() { "$bin/generators_benchmark" --benchmark_min_time=0.2 2>/dev/null; }
simulate() { "$bin/simulate_benchmark" 2>/dev/null; }
reality() { python3 bench/reality.py "$program"; }
forecast() { python3 bench/forecast.py "$program"; }
reference() { bash bench/reference.sh "$program"; }
plan() { python3 bench/plan.py "$program"; }
papers() { python3 bench/papers.py "$program"; }
schedules() { bench/schedules.sh; }
kernels() { "$bin/kernels_benchmark" 2>/dev/null; }
memory() { python3 bench/memory.py "$program" "${options[@]}"; }
memory-reference() { "$program" plan --score bench/reference/atc24_memory.csv; }
overhead() { python3 bench/overhead.py "$program"; }
peers() { python3 bench/peers.py "$program" "${options[@]}"; }
slimpipe() { python3 bench/slimpipe.py "$program"; }
exchange() { python3 bench/exchange.py "$program"; }
pictures() {
  local show="$program show --schedule slimpipe -p 4 --format svg"
  $show -m 2 -n 8 > docs/pictures/slimpipe.svg
  $show -m 1 -n 8 -v 2 > docs/pictures/slimpipe_chunks.svg
  $show -m 2 -n 4 --vocabulary-parallel > docs/pictures/slimpipe_vocabulary.svg
}

names="generators simulate reality forecast reference plan papers memory memory-reference schedules kernels overhead peers slimpipe exchange pictures"
wanted=""
while [ $# -gt 0 ] && [[ $1 != -* ]]; do wanted+="$1 "; shift; done
options=("$@")
case "$wanted:$#" in
  *:0 | "memory :"* | "peers :"*) ;;
  *) echo "only \"memory\" and \"peers\", each alone, take options" >&2; exit 2 ;;
esac
wanted=${wanted:-$names}
mkdir -p bench/results
for name in $wanted; do
  [[ " $names " == *" $name "* ]] || { echo "no benchmark is called \"$name\"; there are: $names" >&2; exit 2; }
  printf '== %s\n' "$name"
  if [ "$name" = schedules ]; then schedules > docs/schedules.md; echo "written: docs/schedules.md"; continue; fi
  if [ "$name" = pictures ]; then pictures; echo "written: docs/pictures/slimpipe*.svg"; continue; fi
  { machine; "$name"; } | tee "bench/results/$name.txt"
done
