#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The planner on published figures: every table scored, the errors beside their aims, and the speed of the search, the
# median of three. ./dev bench reference also keeps the fit of the constants, in bench/results/reference_fit.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/penstock}

for table in atc24_memory slimpipe_planner atc24_throughput calculon_cases vtrain_multi_node throughput/hopper throughput/a100; do
  "$program" plan --score "bench/reference/$table.csv"
  echo
done
python3 bench/accuracy.py "$program"
echo
python3 bench/search_speed.py "$program"
