// SPDX-License-Identifier: Apache-2.0
#include "nn/joined_keys.h"

#include <ATen/ops/cat.h>

#include "model/joined_keys.h"
#include "nn/kernels/element_dispatch.h"

namespace penstock::nn {
namespace {

// Concatenates the tokens of chunks [b, K, C, d]. Values are token-major in memory and stay so: whole slices
// are copied in one piece.
at::Tensor with_joined_tokens(std::vector<at::Tensor> chunks) {
  if (chunks.front().stride(1) >= chunks.front().stride(2)) return at::cat(chunks, 2);
  for (at::Tensor& chunk : chunks) chunk = chunk.transpose(1, 2);
  return at::cat(chunks, 1).transpose(1, 2);
}

// Returns whether the part's gradients become its slice's sums, which take them over.
bool begins_sums(const EarlierPart& part) {
  const LayerRecord& record = *part.record;
  return !record.key_gradient.defined() && part.part.length == record[Saved::Key].size(2);
}

}  // namespace

std::vector<EarlierParts> joined_parts(EarlierParts parts, std::int64_t least_keys) {
  std::vector<Tokens> lengths;
  for (const EarlierPart& part : parts) lengths.push_back(part.part.length);
  return model::in_groups<EarlierPart>(parts, model::joined_chunks(lengths, least_keys));
}

KeyValues keys_and_values(EarlierParts parts) {
  if (parts.size() == 1) return keys_and_values(*parts.front().record, parts.front().part);
  std::vector<at::Tensor> keys, values;
  for (const EarlierPart& part : parts) {
    const KeyValues chunk = keys_and_values(*part.record, part.part);
    keys.push_back(chunk.key);
    values.push_back(chunk.value);
  }
  return {with_joined_tokens(std::move(keys)), with_joined_tokens(std::move(values))};
}

void add_gradients(EarlierParts parts, const KeyValues& gradients) {
  if (parts.size() == 1) return add_gradients(*parts.front().record, parts.front().part, gradients);
  std::int64_t begin = 0;
  for (const EarlierPart& part : parts) {
    const auto piece = [&](const at::Tensor& all) {
      const at::Tensor view = all.narrow(2, begin, part.part.length);
      if (!begins_sums(part)) return view;
      // A sum that takes over a view would keep the whole storage alive.
      return view.to(kernels::accumulator_type(all.scalar_type()), /*non_blocking=*/false, /*copy=*/true,
                     at::MemoryFormat::Contiguous);
    };
    add_gradients(*part.record, part.part, {piece(gradients.key), piece(gradients.value)});
    begin += part.part.length;
  }
}

}  // namespace penstock::nn
