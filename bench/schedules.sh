#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints docs/schedules.md: ./dev bench schedules writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/penstock
cat <<'TEXT'
# Schedules

Written by `./dev bench schedules`. Devices p, micro-batches m, slices n, chunks (stages a device) v.

## All at one size

Unit costs: F = 1, B = 2, I = W = 1. In flight: micro-batches' worth of records that the fullest device holds, in units of
one device's share of the layers (1F1B's first device holds p). A record lives until its B or W; of its size most is
given up at I already. The bubble of the step counts a device's idle time from the first action of any device to the last;
the bubble of a device's span counts from its own first action to its own last, which is what the zero-bubble papers mean.
Sends of a sliced schedule are as many times smaller as there are slices.

`penstock show --compare -p 8 -m 16 -n 8`

TEXT
"$program" show --compare -p 8 -m 16 -n 8
cat <<'TEXT'

## Greedy against the fixed patterns

Long context makes F, I and W unequal: attention has no weights. `greedy` builds a schedule for given times within a memory
limit; the patterns were drawn for F = I = W. Idle time in percent of the step, smaller is better. Limits count the records
of stages that a device may hold: what 1F1B's first device holds, twice that, and with two stages a device what v-min and
v-half themselves hold at this p and m; a dash stands for a pattern that holds more. The last column says where greedy's
order comes from: a fixed pattern that it adopted as it is, a pattern's F and I with the W placed anew, or its own priority
rules (also where those are as short as a pattern and some device ends earlier).

`build/release/bin/greedy_table`

TEXT
build/release/bin/greedy_table
