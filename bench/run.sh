#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmarks, all or some by name. What one prints is kept in bench/results/ under a head that says on which machine, of
# which commit ("+": with changes), on which day (UTC) and by which command; bench/figures.py then copies it into the documents.
# Options after the name go to bench/peers.py, bench/replicas.py, bench/mesh.py, bench/moe.py, bench/documents.py, bench/packed.py, bench/checkpoints.py, bench/memory.py or tests/soak/soak.py: "peers --continue" measures what is missing yet.
# --check before the names checks them and ends.
# PENSTOCK_BENCH_QUICK=1 runs everything at sizes of seconds, to see that it works, and keeps that in build/bench/quick/.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/penstock
bin=build/release/bin
kept=bench/results
quick=""
[ "${PENSTOCK_BENCH_QUICK:-}" = 1 ] && quick=1 && kept=build/bench/quick

widest() {
  local flag best=none
  for flag in avx2 avx512f avx512_bf16 amx_bf16; do grep -qw "$flag" /proc/cpuinfo && best=$flag; done
  printf '%s' "$best"
}
machine() {
  local card=""
  [ "${1:-}" = gpu ] && card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
  [ -z "$card" ] || printf '%s, ' "$card"
  processor
}
processor() { printf '%s, %s cores, %s' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(widest)"; }

# file_of NAME: its results; of what shows the kernels' speed one for each kind of processor, which has its own.
file_of() {
  case "$1:$(widest)" in
    *:amx_bf16) printf '%s' "$1" ;;
    kernels:* | memory:* | peers:*) printf '%s-%s' "$1" "$(widest)" ;;
    *) printf '%s' "$1" ;;
  esac
}

# What benchmarks write does not change the program.
commit() {
  git rev-parse --short=7 HEAD | tr -d '\n'
  [ -z "$(git status --porcelain -- . ':!bench/results' ':!docs' ':!README.md')" ] || printf '+'
}

# google PROGRAM [SECONDS]: a Google Benchmark program, each of whose rounds takes at least so long.
google() { python3 bench/google.py "$bin/$1" "${quick:+0.01}"; }

generators() { google generators_benchmark; }
simulate() { google simulate_benchmark; }
reality() { python3 bench/reality.py "$program"; }
forecast() { python3 bench/forecast.py "$program" ${quick:+1}; }
reference() { bash bench/reference.sh "$program"; }
reference_fit() { "$program" plan --fit bench/reference --checked engines/checked.csv; }
throughput() { python3 bench/throughput.py "$program"; }
plan() { python3 bench/plan.py "$program" ${quick:+1}; }
python_border() { python3 bench/python_border.py "$program" ${quick:---install}; }
papers() { python3 bench/papers.py "$program"; }
schedules() { bench/schedules.sh; }
kernels() {
  google kernels_benchmark
  printf '\n'
  google elementwise_benchmark
  printf '\n'
  "$bin/attention_table" ${quick:+1 2048}
}
memory() { python3 bench/memory.py "$program" ${quick:+--small} "${options[@]}"; }
memory-reference() { "$program" plan --score bench/reference/atc24_memory.csv; }
overhead() { python3 bench/overhead.py "$program"; }
shares() { python3 bench/shares.py "$program"; }
peers() { python3 bench/peers.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
replicas() { python3 bench/replicas.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
mesh() { python3 bench/mesh.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
moe() { python3 bench/moe.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
documents() { python3 bench/documents.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
packed() { python3 bench/packed.py "$program" ${quick:+--sizes XS} "${options[@]}"; }
checkpoints() { python3 bench/checkpoints.py "$program" ${quick:+--size demo --rounds 1} "${options[@]}"; }
balance() { python3 bench/balance.py "$program"; }
slimpipe() { python3 bench/slimpipe.py "$program"; }
exchange() { python3 bench/exchange.py "$program"; }
soak() { python3 tests/soak/soak.py "$program" ${quick:+10} "${options[@]}"; }
demo() { python3 bench/demo.py; }
gpu() { python3 bench/gpu.py "$program" ${quick:+--quick}; }
startup() { python3 bench/startup.py "$program" ${quick:+1}; }
fuzz() { if [ -n "$quick" ]; then ./dev fuzz --inputs 1000; else ./dev fuzz --inputs 1000000; fi; }
pictures() {
  local show="$program show --schedule slimpipe -p 4 --format svg" to=docs/pictures
  [ -z "$quick" ] || to=$kept
  $show -m 2 -n 8 > "$to/slimpipe.svg"
  $show -m 1 -n 8 -v 2 > "$to/slimpipe_chunks.svg"
  $show -m 2 -n 4 --vocabulary-parallel > "$to/slimpipe_vocabulary.svg"
  $program show --schedule slimpipe -p 2 -m 2 -n 8 --offload 1 --format svg > "$to/offload.svg"
  $program show --mesh -p 2 -d 2 -c 2 -t 2 -e 4 --gpus-per-node 8 --format svg > "$to/mesh.svg"
  echo "written: $to/slimpipe*.svg, offload.svg, mesh.svg"
}

# A benchmark that fails leaves the file of the last one that did not.
run() {
  printf '== %s\n' "$1"
  { printf 'machine  %s\ncommit   %s\ndate     %s\ncommand  %s\n\n' "$(machine "$1")" "$(commit)" "$(date -u +%F)" "./dev bench $1${options[*]:+ ${options[*]}}"
    "$1"; } | tee "build/bench/$1.partial"
  mv "build/bench/$1.partial" "$kept/$(file_of "$1").txt"
}

names="generators simulate reality forecast reference_fit reference throughput plan python_border papers memory memory-reference schedules kernels overhead shares peers replicas mesh moe documents packed checkpoints balance slimpipe exchange demo startup pictures"
asked="fuzz soak gpu"  # hours, or a card: only by name
wanted=""
check=""
[ "${1:-}" = --check ] && check=1 && shift
while [ $# -gt 0 ] && [[ $1 != -* ]]; do wanted+="$1 "; shift; done
options=("$@")
case "$wanted:$#" in
  *:0 | "memory :"* | "peers :"* | "replicas :"* | "mesh :"* | "moe :"* | "documents :"* | "packed :"* | "checkpoints :"* | "soak :"*) ;;
  *) echo "only \"memory\", \"peers\", \"replicas\", \"mesh\", \"moe\", \"documents\", \"packed\", \"checkpoints\" and \"soak\", each alone, take options" >&2; exit 2 ;;
esac
# One name runs another benchmark too.
case "$wanted" in
  "reality ") wanted="reality forecast" ;;
  "reference ") wanted="reference_fit reference" ;;
esac
for name in $wanted; do
  [[ " $names $asked " == *" $name "* ]] || { echo "no benchmark is called \"$name\"; there are: $names $asked" >&2; exit 2; }
done
[ -z "$check" ] || exit 0
mkdir -p build/bench "$kept"
for name in ${wanted:-$names}; do
  if [ "$name" = pictures ]; then pictures; else run "$name"; fi
done
[ -n "$quick" ] || python3 bench/figures.py || { echo "the documents name figures, listed above, that are others now" >&2; exit 1; }
