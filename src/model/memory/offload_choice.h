// SPDX-License-Identifier: Apache-2.0
// Selects the bytes of a record to offload, among its tensors by size alone (docs/memory.md, "Offloading").
#pragma once

#include <span>
#include <vector>

#include "base/units.h"

namespace penstock::model {

// share · total rounded to whole cache lines; exactly `total` for a share of 1. `share` is from 0 to 1.
Bytes leaving_bytes(Bytes total, double share);

// The bytes to offload per tensor, `leaving` in total: whole tensors with the largest sum that does not
// exceed `leaving`; the rest is taken from the front of one other tensor. Depends only on the sizes and their
// order. `leaving` is at most the sum of the sizes.
//
// O(distinct sizes · leaving / greatest common divisor of the sizes), a few thousand steps for records of
// equal layers. Beyond a million steps it takes tensors in descending order of size instead, which may cut a
// tensor where another set would not.
std::vector<Bytes> choose_leaving(std::span<const Bytes> sizes, Bytes leaving);

}  // namespace penstock::model
