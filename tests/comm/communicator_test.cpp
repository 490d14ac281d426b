// SPDX-License-Identifier: Apache-2.0
// The contract, on the transports that live in one process.
#include <gtest/gtest.h>

#include "comm/contract.h"
#include "comm/single.h"
#include "comm/threads.h"

namespace penstock::comm {
namespace {

const auto law_name = [](const auto& info) { return info.param.name; };

class Single : public testing::TestWithParam<Law> {};

TEST_P(Single, Keeps) { GetParam().holds(*make_single()); }

INSTANTIATE_TEST_SUITE_P(Contract, Single, testing::ValuesIn(contract()), law_name);

class Threads : public testing::TestWithParam<Law> {};

TEST_P(Threads, Keep) {
  for (int ranks : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(ranks, GetParam().holds);
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Threads, testing::ValuesIn(contract()), law_name);

TEST(Single, IsRankZeroOfOne) {
  const auto alone = make_single();
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->size(), 1);
}

}  // namespace
}  // namespace penstock::comm
