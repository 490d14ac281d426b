// SPDX-License-Identifier: Apache-2.0
// Small schedules written out. Where PyTorch 2.11 generates the same schedule, its text is the expectation.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

TEST(GeneratorText, SlimpipeRunsAllForwardsOfASlotTogether) {
  EXPECT_EQ(to_csv(generate("slimpipe", request(2, 2, 3))),
            "0F0.0,0F0.1,0F0.2,0F1.0,0F1.1,0B0.2,0F1.2,0B0.1,0B0.0,0B1.2,0B1.1,0B1.0\n"
            "1F0.0,1F0.1,1F0.2,1B0.2,1F1.0,1B0.1,1F1.1,1B0.0,1F1.2,1B1.2,1B1.1,1B1.0\n");
}

TEST(GeneratorText, InterleavedIsPyTorchs) {
  EXPECT_EQ(to_csv(generate("interleaved", request(2, 4, 1, 2))),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
}

TEST(GeneratorText, ZbH1IsPyTorchsInterleavedZeroBubbleOfOneChunk) {
  EXPECT_EQ(to_csv(generate("zb-h1", request(3, 4))),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
            "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3\n");
}

TEST(GeneratorText, DualpipeVIsPyTorchs) {
  EXPECT_EQ(
      to_csv(generate("dualpipe-v", request(2, 4))),
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,"
      "0I2,0W2,0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,"
      "2I3,1I3,2W3,1W3\n");
}

}  // namespace
}  // namespace penstock::schedule
