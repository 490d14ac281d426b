// SPDX-License-Identifier: Apache-2.0
// Which bytes of a record leave its device: a choice among its tensors by bytes alone (algorithms:
// "Pipeline-parallel-aware offloading").
#pragma once

#include <span>
#include <vector>

#include "base/units.h"

namespace penstock::model {

// The nearest whole number of cache lines to share · total; all of it for a share of 1. `share` is from 0 to
// 1.
Bytes leaving_bytes(Bytes total, double share);

// Of each tensor the bytes that leave, `leaving` together. Whole tensors whose sizes come as near to
// `leaving` as any set can without exceeding it; what is missing is cut off the front of one other tensor.
// The answer depends on the sizes and their order alone. `leaving` is at most the sum of the sizes.
//
// O(distinct sizes · sum / greatest common divisor of the sizes), a few thousand steps for records of equal
// layers; beyond a million, tensors are taken in descending order of size instead, which can cut where
// another set would not.
std::vector<Bytes> choose_leaving(std::span<const Bytes> sizes, Bytes leaving);

}  // namespace penstock::model
