// SPDX-License-Identifier: Apache-2.0
// What was measured of a machine, as one of its ranks sees it. Rates are work by the formulas beside them
// over median seconds; each list has one number for each of the sizes it belongs to.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::profile {

struct Sizes {
  Numbers matrix_tokens{64, 256, 1024};
  Numbers matrix_width{128, 256, 512, 1024};
  Numbers attention_tokens{64, 128, 256, 512, 1024, 2048};
  Numbers elementwise_tokens{64, 256, 1024};  // of hidden states of kElementwiseHidden numbers
  Numbers message_kb{1, 16, 128, 512, 2048, 8192};
};

// FLOP/s of products of m = tokens and k = n = width (2·m·n·k), by the kernels that training uses.
struct ProductRates {
  Numbers forward, input, weight;  // a row of widths for each number of tokens
};

// FLOP/s of calls of as many keys as queries: own keys are causal, which halves the work; a backward has 2.5
// times a forward's. With the copies and sums that go with them.
struct AttentionRates {
  Numbers own, own_backward, earlier, earlier_backward;
};

// Bytes/s through a layer's elementwise work, and hidden states' bytes.
struct ElementwiseRates {
  Numbers bytes, forward, backward;
};

struct Measurements {
  Sizes sizes;
  model::Precision precision = model::Precision::BF16;  // of attention and elementwise work
  ProductRates products, f32_products;                  // the first in bf16
  AttentionRates attention;
  ElementwiseRates elementwise;
  double optimizer_rate = 0;  // bytes/s
  double copy_rate = 0;       // bytes/s copied within memory by one rank, all of them at it
  double memory_rate = 0;     // bytes/s read and written by it
  double disk_write_rate = 0, disk_read_rate = 0;
  Numbers message_seconds;  // of each size

  double disturbed = 0;  // share of repeats in which the core was taken away
  double spread = 0;     // mean over the figures of quartile range over median
};

// Of the machine, for the file's text.
struct MachineFacts {
  std::string description;  // processor, instructions
  int ranks = 1;
  int threads = 1;          // of each rank
  std::string transport;    // "threads of one process"
  double memory_bytes = 0;  // of the host, or what a container may use
  double used_bytes = 0;    // of it by now
};

}  // namespace penstock::profile
