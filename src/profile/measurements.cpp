// SPDX-License-Identifier: Apache-2.0
#include "profile/measurements.h"

namespace penstock::profile {

Sizes large_sizes() {
  return {.matrix_tokens = {512, 2048, 8192, 16384},
          .matrix_width = {1024, 2048, 4096, 8192},
          .attention_tokens = {1024, 2048, 4096, 8192, 16384},
          .elementwise_tokens = {512, 2048, 8192},
          .message_kb = {1, 64, 1024, 8192, 65536},
          .attention_heads = 32,
          .head_size = 128,
          .elementwise_hidden = 4096,
          .elementwise_ffn = 14336,
          .elementwise_heads = 32,
          .copy_bytes = std::int64_t{1} << 30};
}

}  // namespace penstock::profile
