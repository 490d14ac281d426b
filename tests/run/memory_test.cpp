// SPDX-License-Identifier: Apache-2.0
#include "run/memory.h"

#include <gtest/gtest.h>

#include <functional>

#include "run/resolve/resolve.h"

namespace penstock::run {
namespace {

// Eight sequences of 1,024 tokens in eight slices over two devices, changed by one line of a test.
run::Run resolved(const std::function<void(Options&)>& change) {
  Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  change(options);
  return resolve(options);
}

Bytes predicted_logits(Tokens tile, Tokens micro_batch) {
  const run::Run run = resolved([&](Options& options) {
    options.train.loss_tile_tokens = tile;
    options.train.micro_batch = micro_batch;
  });
  return run.predicted.back().logits;
}

TEST(PredictedMemory, PredictsNoTileOfLogitsWithMoreRowsThanASliceHas) {
  EXPECT_LT(predicted_logits(127, 1), predicted_logits(128, 1));
  EXPECT_EQ(predicted_logits(128, 1), predicted_logits(512, 1));
  EXPECT_LT(predicted_logits(255, 2), predicted_logits(256, 2));
  EXPECT_EQ(predicted_logits(256, 2), predicted_logits(1 << 20, 2));
}

}  // namespace
}  // namespace penstock::run
