// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_profile.h"
#include "train/record/named_profile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "comm/threads.h"

namespace penstock::train {
namespace {

nn::KernelCall call(nn::Kernel kernel, nn::Block block, Seconds start, Seconds end) {
  return {.kernel = kernel, .block = block, .start = start, .end = end, .flops = 1e6};
}

const std::vector<StepProfile> kTwoSteps = {
    {3,
     {{call(nn::Kernel::Product, nn::Block::Attention, 0, 0.25),
       call(nn::Kernel::Product, nn::Block::Attention, 0.5, 1)},
      {}}},
    {4, {{call(nn::Kernel::Attention, nn::Block::Attention, 0, 0.25)}, {}}}};

TEST(StepProfile, ReadsBackWhatItWrote) {
  const auto profiles = parse_profiles(to_json(kTwoSteps), "profile.json");
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[1].step, 4);
  ASSERT_EQ(profiles[0].devices.size(), 2u);
  ASSERT_EQ(profiles[0].devices[0].size(), 2u);
  const NamedCall& second = profiles[0].devices[0][1];
  EXPECT_EQ(second.kernel, "product");
  EXPECT_EQ(second.block, "attention");
  EXPECT_EQ(second.start, 0.5);
  EXPECT_EQ(second.end, 1.0);
}

TEST(StepProfile, TableSharesAddUpToTheComputeTime) {
  const std::string table = profile_table(kTwoSteps, 2.0);  // a second in kernels, a second outside
  const auto lines = split(table, '\n');
  ASSERT_GE(lines.size(), 4u);
  EXPECT_NE(lines[1].find("product"), lines[1].npos) << "the longest comes first:\n" << table;
  EXPECT_NE(lines[1].find("375.00  37.5"), lines[1].npos) << table;
  EXPECT_NE(lines[2].find("125.00  12.5"), lines[2].npos) << table;
  EXPECT_NE(lines[3].find("500.00  50.0"), lines[3].npos) << table;
}

TEST(StepProfile, NamesWhatIsNoProfile) {
  for (const char* text :
       {"", "[]", "{}", R"({"kernels": [], "blocks": [], "steps": [{}]})",
        R"({"kernels": ["a"], "blocks": ["b"], "steps": [{"step": 1, "devices": [[[1, 0, 0, 0]]]}]})",
        R"({"kernels": ["a"], "blocks": ["b"], "steps": [{"step": 1, "devices": [[["a", 0, 0, 0]]]}]})"}) {
    try {
      parse_profiles(text, "profile.json");
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("profile.json", 0), 0u) << error.what();
    }
  }
}

TEST(StepProfile, GathersEveryRanksCallsOnTheFirst) {
  comm::run_ranks(3, [](comm::Communicator& world) {
    const std::vector<nn::KernelCall> mine(static_cast<std::size_t>(world.rank()),
                                           call(nn::Kernel::Norm, nn::Block::Stream, world.rank(), 9));
    const StepProfile profile = gather_profile(7, mine, comm::Pipeline(world));
    if (world.rank() != 0) {
      EXPECT_TRUE(profile.devices.empty());
      return;
    }
    ASSERT_EQ(profile.devices.size(), 3u);
    for (std::size_t rank = 0; rank < 3; ++rank) ASSERT_EQ(profile.devices[rank].size(), rank);
    EXPECT_EQ(profile.devices[2][1].start, 2.0);
  });
}

}  // namespace
}  // namespace penstock::train
