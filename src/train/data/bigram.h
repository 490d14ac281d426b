// SPDX-License-Identifier: Apache-2.0
// Loss of a bigram model: the next byte by how often it followed the present one.
#pragma once

#include <functional>

#include "train/data/data.h"

namespace penstock::train {

// Mean loss in nats over the targets of all evaluation batches, of a table of byte pairs counted in the
// training text with one added to every count (256 bytes may follow). Reads the whole training text once. The
// data must have a held-out part. `after_part` is called after some MiB of the text and each batch; may be
// empty.
double bigram_loss(const TokenData& data, const std::function<void()>& after_part = {});

}  // namespace penstock::train
