// SPDX-License-Identifier: Apache-2.0
#include "backend/memory.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <thread>

namespace penstock::backend {
namespace {

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::dtype(at::kByte)); }

class Allocator : public testing::Test {
 protected:
  Allocator() { install_allocator(); }
  Ledger ledger_;
};

TEST_F(Allocator, CountsWhatTensorsAskForAndForgetsWhatIsFreed) {
  const LedgerScope scope(ledger_);
  {
    const at::Tensor small = bytes(1000);
    const at::Tensor large = bytes(3'000'001);
    EXPECT_EQ(ledger_.live(model::Category::Transient), 3'001'001);
    EXPECT_EQ(ledger_.live_total(), 3'001'001);
  }
  EXPECT_EQ(ledger_.live_total(), 0);
  EXPECT_EQ(ledger_.peak_total(), 3'001'001);
  ledger_.reset_peaks();
  EXPECT_EQ(ledger_.peak_total(), 0);
}

TEST_F(Allocator, CountsInTheCategoryOfTheScopeAndRecountsWhatIsKept) {
  const LedgerScope scope(ledger_);
  at::Tensor kept;
  {
    const CategoryScope weights(model::Category::Weights);
    kept = bytes(100);
  }
  EXPECT_EQ(ledger_.live(model::Category::Weights), 100);
  recount(kept, model::Category::Activations);
  EXPECT_EQ(ledger_.live(model::Category::Weights), 0);
  EXPECT_EQ(ledger_.live(model::Category::Activations), 100);
  recount(kept.slice(0, 10, 20), model::Category::Logits);
  EXPECT_EQ(ledger_.live(model::Category::Logits), 100) << "a view stands for its whole storage";
  kept.reset();
  EXPECT_EQ(ledger_.live_total(), 0);
  EXPECT_EQ(ledger_.peak(model::Category::Activations), 100);
}

TEST_F(Allocator, KeepsRanksThatAreThreadsApartAndFindsTheOwnerOfABlockFreedElsewhere) {
  Ledger other;
  at::Tensor made_there;
  std::thread([&] {
    const LedgerScope scope(other);
    made_there = bytes(5000);
  }).join();
  const LedgerScope scope(ledger_);
  const at::Tensor made_here = bytes(70);
  EXPECT_EQ(ledger_.live_total(), 70);
  EXPECT_EQ(other.live_total(), 5000);
  made_there.reset();
  EXPECT_EQ(other.live_total(), 0);
  EXPECT_EQ(ledger_.live_total(), 70);
}

TEST_F(Allocator, GivesTheSameMemoryAgainForALargeTensorOfTheSameSize) {
  void* first = bytes(8'000'000).data_ptr();
  const at::Tensor again = bytes(7'900'000);
  EXPECT_EQ(again.data_ptr(), first);
}

TEST_F(Allocator, HoldsNoMoreForReuseThanATenthOfTheGreatestUse) {
  Bytes most = 0;  // blocks larger than those of all other tests, whose greatest use counts too
  for (int round = 0; round < 50; ++round) {
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 10; ++i) tensors.push_back(bytes(8'000'000 + 560'000 * ((round * 7 + i * 3) % 11)));
    tensors.erase(tensors.begin(), tensors.begin() + 3);
    most = std::max<Bytes>(most, cached_bytes());
  }
  EXPECT_LT(most, 400'000'000) << "blocks of many sizes pile up";
  EXPECT_GT(most, 0);
}

TEST_F(Allocator, AlignsDataToCacheLines) {
  for (const std::int64_t size : {1, 63, 4097, 1'000'003}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes(size).data_ptr()) % 64, 0u);
  }
}

}  // namespace
}  // namespace penstock::backend
