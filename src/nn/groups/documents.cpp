// SPDX-License-Identifier: Apache-2.0
#include "nn/groups/documents.h"

#include <algorithm>

namespace penstock::nn {

std::optional<kernels::Visible> Documents::visible(kernels::Mask mask, const TokenRun& queries,
                                                   const TokenRun& keys) const {
  if (!defined() || queries.count == 0) return kernels::Visible(mask);
  const at::Tensor of_queries = starts.narrow(1, queries.first, queries.count);
  // Starts do not decrease along a sequence.
  std::int64_t least = INT64_MAX, greatest = 0;
  for (std::int64_t sequence = 0; sequence < starts.size(0); ++sequence) {
    const auto* row = of_queries.const_data_ptr<std::int64_t>() + sequence * of_queries.stride(0);
    least = std::min(least, row[0]);
    greatest = std::max(greatest, row[queries.count - 1]);
  }
  if (least >= keys.first + keys.count) return std::nullopt;
  if (greatest <= keys.first) return kernels::Visible(mask);
  return kernels::Visible(mask, of_queries, keys.first);
}

model::Documents lengths_of(const at::Tensor& starts) {
  model::Documents documents(static_cast<std::size_t>(starts.size(0)));
  const std::int64_t tokens = starts.size(1);
  const auto* row = starts.const_data_ptr<std::int64_t>();
  for (std::vector<Tokens>& lengths : documents) {
    for (std::int64_t begin = 0, at = 1; at <= tokens; ++at) {
      if (at < tokens && row[at] == begin) continue;
      lengths.push_back(at - begin);
      begin = at;
    }
    row += tokens;
  }
  return documents;
}

}  // namespace penstock::nn
