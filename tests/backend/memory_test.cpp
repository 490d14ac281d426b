// SPDX-License-Identifier: Apache-2.0
#include "backend/memory.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "backend/account.h"

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

TEST_F(Allocator, CountsNothingOfWhatMayOutliveTheLedger) {
  at::Tensor longer;
  {
    Ledger gone;
    const LedgerScope scope(gone);
    const UncountedScope uncounted;
    longer = bytes(1000);
    EXPECT_EQ(gone.live_total(), 0);
  }
  longer.reset();
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

// Blocks larger than those of all other tests here, whose peak use counts too.
TEST_F(Allocator, HoldsForReuseLittleMoreThanThePeakUse) {
  const LedgerScope scope(ledger_);
  Bytes peak = 0, most_held = 0;
  std::vector<at::Tensor> tensors;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 10; ++i) {
      const double size = 32e6 * std::pow(1.2, (round * 7 + i * 3) % 11);  // none fits where another was
      tensors.push_back(bytes(static_cast<std::int64_t>(size)));
      peak = std::max(peak, ledger_.live_total());
      ASSERT_LE(ledger_.live_total() + cached_bytes(), peak + std::max(peak / 64, 32 * MiB) + MiB)
          << "blocks of many sizes pile up";
    }
    tensors.erase(tensors.begin(), tensors.end() - 3);
    most_held = std::max(most_held, cached_bytes());
  }
  EXPECT_GT(most_held, peak / 2) << "what was freed is held for reuse";
}

// Or else a run after a measurement of more could hold as much as both.
TEST_F(Allocator, ForgetsThePeakUseWhenItGivesBackWhatItHolds) {
  { const at::Tensor large = bytes(500 * MiB); }
  release_cached();
  EXPECT_EQ(cached_bytes(), 0);
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 5; ++i) tensors.push_back(bytes(20 * MiB + i * 4 * MiB));
  tensors.clear();
  EXPECT_LE(cached_bytes(), 200 * MiB) << "bounded by the later peak";
}

TEST_F(Allocator, AlignsDataToCacheLines) {
  for (const std::int64_t size : {1, 63, 4097, 1'000'003}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes(size).data_ptr()) % 64, 0u);
  }
}

}  // namespace
}  // namespace penstock::backend
