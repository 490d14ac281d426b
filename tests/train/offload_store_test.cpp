// SPDX-License-Identifier: Apache-2.0
// A store serves the steps' plans one after the other.
#include "train/offload/store.h"

#include <gtest/gtest.h>

namespace penstock::train {
namespace {

TEST(OffloadStore, IsReplacedOnlyWhereItHasTooLittleRoom) {
  std::unique_ptr<OffloadStore> store;
  int made = 0;
  const auto ensure = [&](Bytes size) {
    ensure_room(store, size, [&] {
      EXPECT_FALSE(store) << "the one before is gone first";
      ++made;
      return host_store(size);
    });
    EXPECT_GE(store->size(), size);
    return made;
  };
  EXPECT_EQ(ensure(8192), 1);
  EXPECT_EQ(ensure(4096), 1);
  EXPECT_EQ(ensure(8192), 1);
  EXPECT_EQ(ensure(12288), 2);
}

}  // namespace
}  // namespace penstock::train
