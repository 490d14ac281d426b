// SPDX-License-Identifier: Apache-2.0
// Loss of a bigram model: predicts the next byte by how often it followed the current one.
#pragma once

#include <functional>

#include "train/data/data.h"

namespace penstock::train {

// Mean loss in nats over the targets of all evaluation batches. The table counts byte pairs in the training
// text, with one added to every count (256 bytes may follow). Reads the whole training text once. The data
// must have a held-out part. `after_part` is called after every 64 MiB of the text and after each batch; may
// be empty.
double bigram_loss(const TokenData& data, const std::function<void()>& after_part = {});

}  // namespace penstock::train
