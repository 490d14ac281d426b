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

Unit costs: F = 1, B = 2, I = W = 1. In flight: peak records on the fullest device, counted in micro-batches of one
device's share of the layers (1F1B's first device holds p). A record lives until its B or W, but most of it is
freed at I. The bubble of the step counts a device's idle time from the first action of any device to the last action of any;
the bubble of a device's span counts from its own first action to its own last, which is what the zero-bubble papers mean.
Each send of a sliced schedule carries 1/n of the bytes.

`penstock show --compare -p 8 -m 16 -n 8`

TEXT
"$program" show --compare -p 8 -m 16 -n 8
cat <<'TEXT'

## Greedy against the fixed patterns

Long context makes F, I and W unequal: attention has no weights. `greedy` builds a schedule for given times within a memory
limit; the patterns were designed for F = I = W. Idle time is in percent of the step; smaller is better. A limit is the number
of stage records that a device may hold: as many as 1F1B's first device, twice as many, and, with two stages a device, as many
as v-min or v-half holds at this p and m; a dash stands for a pattern that exceeds the limit. The last column says where
greedy's order comes from: a fixed pattern as it is, a pattern's F and I with the W placed anew, or greedy's own priority
rules (also if their step is as short as a pattern's and some device ends earlier).

`build/release/bin/greedy_table`

TEXT
build/release/bin/greedy_table
