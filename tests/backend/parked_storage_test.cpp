// SPDX-License-Identifier: Apache-2.0
#include "backend/parked_storage.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backend/memory.h"

namespace penstock::backend {
namespace {

// 400 bytes of 100 numbers, seen through a transposed view as well.
struct Saved {
  Saved() {
    install_allocator();
    const LedgerScope scope(ledger);
    tensor = at::arange(100, at::dtype(at::kInt)).view({10, 10});
    view = tensor.t();
    recount(tensor, model::Category::Activations);
  }
  Ledger ledger;
  at::Tensor tensor, view;
};

TEST(ParkedStorage, ComesBackWithEveryByteThroughEveryView) {
  for (const Bytes leaving : {1, 64, 333, 400}) {
    Saved saved;
    const LedgerScope scope(saved.ledger);
    const Bytes whole = saved.ledger.live(model::Category::Activations);
    ParkedStorage parked(saved.tensor.storage(), leaving);
    std::vector<std::byte> elsewhere(parked.front().begin(), parked.front().end());
    parked.leave();
    EXPECT_EQ(saved.ledger.live(model::Category::Activations), whole - leaving);
    const std::span<std::byte> front = parked.come_back();
    ASSERT_EQ(front.size(), elsewhere.size());
    std::memcpy(front.data(), elsewhere.data(), front.size());
    EXPECT_EQ(saved.ledger.live(model::Category::Activations), whole);
    EXPECT_TRUE(saved.tensor.equal(at::arange(100, at::dtype(at::kInt)).view({10, 10})));
    EXPECT_EQ(saved.view[3][7].item<int>(), 73);
  }
}

TEST(ParkedStorage, ActivationsNeverCountMoreThanTheWhole) {
  Saved saved;
  const LedgerScope scope(saved.ledger);
  const Bytes whole = saved.ledger.live(model::Category::Activations);
  saved.ledger.reset_peaks();
  ParkedStorage parked(saved.tensor.storage(), 100);
  parked.leave();
  parked.come_back();
  EXPECT_EQ(saved.ledger.peak(model::Category::Activations), whole);
}

TEST(ParkedStorage, ThatIsDroppedWhileAwayLeavesNothing) {
  Saved saved;
  {
    const LedgerScope scope(saved.ledger);
    ParkedStorage parked(saved.tensor.storage(), 100);
    parked.leave();
    saved.tensor.reset();
    saved.view.reset();
  }
  EXPECT_EQ(saved.ledger.live_total(), 0);
}

}  // namespace
}  // namespace penstock::backend
