// SPDX-License-Identifier: Apache-2.0
#include "plan/published/offload_split.h"

#include <gtest/gtest.h>

#include "plan/models.h"

namespace penstock::plan {
namespace {

const model::Shape& shape() { return find_model("llama-65b").shape; }
const model::KeepSet kEngine = model::keep_of(model::Policy::Engine24);
constexpr std::int64_t kTokens = 2048;
constexpr Bytes kRecord = 1200 * MiB;  // two layers: sixteen tensors of 32 MiB and eight of 86 MiB

TEST(OffloadSplit, TheFirstBytesOfTheLineLeaveAndOneTensorAtMostIsCut) {
  for (double ratio = 0.05; ratio <= 1.0; ratio += 0.05) {
    const OffloadSplit split = split_for_offload(shape(), kEngine, kTokens, 2, ratio);
    EXPECT_GE(split.leaving, static_cast<Bytes>(ratio * kRecord) - 1);
    EXPECT_LT(split.leaving, static_cast<Bytes>(ratio * kRecord) + MiB + 1);
    const Bytes cut = split.cut_off + split.remainder;
    EXPECT_TRUE(cut == 0 || cut == 32 * MiB || cut == 86 * MiB) << ratio;
  }
}

TEST(OffloadSplit, LargeTensorsGoFirstUpToOneHalfAndLastBeyondIt) {
  const OffloadSplit low = split_for_offload(shape(), kEngine, kTokens, 2, 0.1);
  EXPECT_EQ(low.cut_off + low.remainder, 86 * MiB);
  const OffloadSplit high = split_for_offload(shape(), kEngine, kTokens, 2, 0.8);
  EXPECT_EQ(high.cut_off, 18 * MiB);
  EXPECT_EQ(high.remainder, 68 * MiB);
}

TEST(OffloadSplit, AllOrNothingCutsNothing) {
  EXPECT_EQ(split_for_offload(shape(), kEngine, kTokens, 2, 0.0).leaving, 0);
  const OffloadSplit all = split_for_offload(shape(), kEngine, kTokens, 2, 1.0);
  EXPECT_EQ(all.leaving, kRecord);
  EXPECT_EQ(all.cut_off, 0);
}

}  // namespace
}  // namespace penstock::plan
