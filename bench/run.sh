#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmarks, all or one by name; each prints the machine first, and what it prints is kept in bench/results/.
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
reference() { bash bench/reference.sh "$program"; }
plan() { python3 bench/plan.py "$program"; }
schedules() { bench/schedules.sh; }
kernels() { "$bin/kernels_benchmark" 2>/dev/null; }
memory() { python3 bench/memory.py "$program"; }
memory-reference() { "$program" plan --score bench/reference/atc24_memory.csv; }
overhead() { python3 bench/overhead.py "$program"; }
peers() { python3 bench/peers.py "$program"; }

names="generators simulate reality reference plan memory memory-reference schedules kernels overhead peers"
wanted=${*:-$names}
mkdir -p bench/results
for name in $wanted; do
  [[ " $names " == *" $name "* ]] || { echo "no benchmark is called \"$name\"; there are: $names" >&2; exit 2; }
  printf '== %s\n' "$name"
  if [ "$name" = schedules ]; then schedules > docs/schedules.md; echo "written: docs/schedules.md"; continue; fi
  { machine; "$name"; } | tee "bench/results/$name.txt"
done
