// SPDX-License-Identifier: Apache-2.0
// Measured rates of a machine, per rank. A rate is work, by the formulas given here, over median seconds;
// each list has one number per entry of its list of sizes.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::profile {

struct Sizes {
  Numbers matrix_tokens{64, 256, 1024, 4096};
  Numbers matrix_width{128, 256, 512, 1024};
  Numbers attention_tokens{64, 128, 256, 512, 1024, 2048};
  Numbers elementwise_tokens{64, 256, 1024};  // hidden states of elementwise_hidden elements
  Numbers message_kb{1, 16, 128, 512, 2048, 8192};
  // Heads of attention, and the layer whose elementwise work is measured.
  std::int64_t attention_heads = 8, head_size = 64;
  std::int64_t elementwise_hidden = 512, elementwise_ffn = 1376, elementwise_heads = 8;
  std::int64_t copy_bytes = 64 << 20;
};

// Sizes for a GPU or a device as fast: matrices of Llama's widths, 32 heads of 128.
Sizes large_sizes();

// FLOP/s of products with m = tokens and k = n = width (2·m·n·k), by the kernels that training uses.
struct ProductRates {
  Numbers forward, input, weight;  // one row of widths per number of tokens
};

// FLOP/s of calls with as many keys as queries, or with as many earlier keys as one call of a run takes. Own
// keys are causal, which halves the work; a backward counts as 2.5 forwards. Includes the copies and sums
// around the calls.
struct AttentionRates {
  Numbers own, own_backward, earlier, earlier_backward;
};

// Bytes/s of a layer's elementwise work; `bytes` are those of the hidden states.
struct ElementwiseRates {
  Numbers bytes, forward, backward;
};

// Bytes/s.
struct DiskRates {
  double write = 0, read = 0;
  std::string unknown;  // why both are 0, e.g. the folder is full or read-only
};

struct Measurements {
  Sizes sizes;
  model::Precision precision = model::Precision::BF16;  // of attention and elementwise work
  ProductRates products, f32_products;                  // the first in bf16
  AttentionRates attention;
  ElementwiseRates elementwise;
  double optimizer_rate = 0;   // bytes/s
  std::string optimizer_work;  // the optimizer's parameters, in words
  Seconds layer_seconds = 0;   // of the request's layers
  Seconds gap = 0;             // between two kernels: the layers' time beyond the figures above, per kernel
  double copy_rate = 0;    // bytes/s between device and host per rank, each way; on the CPU, within memory
  double memory_rate = 0;  // bytes/s read and written by copies within the device's memory
  DiskRates disk;
  Numbers message_seconds;  // per size, between ranks of a host
  Numbers network_seconds;  // the same between hosts; empty with a single host

  bool once = false;     // computation was measured in one round, one call each, without warm-up
  double disturbed = 0;  // share of repeats in which the thread was preempted
  double spread = 0;     // interquartile range over median, mean over the figures
};

// Description of the machine, for the file.
struct MachineFacts {
  std::string description;  // CPU, instructions; or the GPU
  int ranks = 1;            // on this machine
  int elsewhere = 0;        // on other machines, measured together with these
  int threads = 1;          // per rank
  std::string transport;    // "threads of one process"
  bool gpu = false;         // else the CPU
  double memory_bytes = 0;  // of the GPU, or of the host or the limit of a container
  int sharers = 1;          // ranks that share it
  double used_bytes = 0;    // currently used
  double host_bytes = 0;    // of the host or the limit of a container
};

}  // namespace penstock::profile
