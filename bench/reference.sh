#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The planner on published figures: every table scored, the constants fitted with each row and each configuration left
# out in turn (kept in bench/results/reference_fit.txt), and the speed of the search.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/penstock}

for table in atc24_memory slimpipe_planner atc24_throughput calculon_cases vtrain_multi_node; do
  "$program" plan --score "bench/reference/$table.csv"
  echo
done
"$program" plan --fit bench/reference > bench/results/reference_fit.txt
sed -n '/^table /,/^$/p' bench/results/reference_fit.txt
for cluster in "128 32" "1024 256" "16384 4096"; do
  read -r gpus batch <<< "$cluster"
  printf '%6d GPUs: ' "$gpus"
  "$program" plan plans/llama-70b-128k.toml --cluster.gpus "$gpus" --workload.global_batch "$batch" | grep 'candidates,'
done
