// SPDX-License-Identifier: Apache-2.0
// Attention of one slice where a context group shares out its tokens (context_group.h): each rank's keys
// under the queries of all (mode Query), or all keys under the rank's own queries (Gather). Which keys a
// query sees follows from the zigzag: of a run of tokens those before it wholly, itself causally.
#pragma once

#include <utility>
#include <vector>

#include "model/slice_halves.h"
#include "nn/attention_partners.h"
#include "nn/groups/context_group.h"
#include "nn/record.h"

namespace penstock::nn {

// A part of an earlier slice, whose first token is at `slice_begin`. Records have whole slices here.
struct EarlierPart {
  LayerRecord* record = nullptr;
  model::SlicePart part;
  std::int64_t slice_begin = 0;

  TokenRun keys() const { return {slice_begin + part.begin, part.length}; }
};

// The earlier slices attended to on this device, newest first, before the one that begins at a position. The
// oldest halves may be computed elsewhere. Of the tokens `ranks` ranks have as many each.
std::vector<EarlierPart> parts_at_home(EarlierSlices earlier, const AttentionPartners* partners,
                                       std::int64_t slice_begin, std::int64_t ranks = 1);

// The shared queries' attention to the keys of this slice and of the earlier ones, over all ranks. Posts
// queries to the partners, who may be null. Needs several token ranks.
kernels::AttentionPart attend_in_context(const ContextGroup& context, const SlicePlace& place,
                                         EarlierSlices earlier, LayerRecord& record,
                                         AttentionPartners* partners);

// The backward, in the shared frame: grad_output and the row sums δ [b, H, T, 1] of it and the output, to the
// gradient of the rotated queries in the accumulator type. Adds to the keys' and values' gradients of the
// earlier slices, and completes those of this one.
at::Tensor attend_in_context_backward(const ContextGroup& context, const SlicePlace& place,
                                      const at::Tensor& grad_output, const at::Tensor& dots,
                                      EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners);

}  // namespace penstock::nn
