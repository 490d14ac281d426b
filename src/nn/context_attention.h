// SPDX-License-Identifier: Apache-2.0
// Attention of one slice whose tokens a context group splits (context_group.h): each rank's keys with the
// queries of all ranks (mode Query), or all keys with the rank's own queries (Gather). The zigzag determines
// which keys a query sees: a run of queries sees all keys before the run, and the run's own keys causally.
#pragma once

#include <utility>
#include <vector>

#include "model/slice_halves.h"
#include "nn/attention_partners.h"
#include "nn/groups/context_group.h"
#include "nn/record.h"

namespace penstock::nn {

// A part of an earlier slice, whose first token is at `slice_begin`. keys() needs records of whole slices.
struct EarlierPart {
  LayerRecord* record = nullptr;
  model::SlicePart part;
  std::int64_t slice_begin = 0;

  TokenRun keys() const { return {slice_begin + part.begin, part.length}; }
};

// The parts of earlier slices that this device attends to, newest first, for the slice that begins at
// `slice_begin`; partners may compute the oldest halves. A record holds 1/`ranks` of its slice's keys.
std::vector<EarlierPart> parts_at_home(EarlierSlices earlier, const AttentionPartners* partners,
                                       std::int64_t slice_begin, std::int64_t ranks = 1);

// Returns the shared queries' attention to the keys of this and of the earlier slices, over all ranks. Posts
// the queries to the partners, which may be null. Needs several token ranks.
kernels::AttentionPart attend_in_context(const ContextGroup& context, const SlicePlace& place,
                                         EarlierSlices earlier, LayerRecord& record,
                                         AttentionPartners* partners);

// The backward, in the shared frame. `dots` [b, H, T, 1] are the row sums δ of grad_output · output. Returns
// the gradient of the rotated queries in the accumulator type. Adds to the key and value gradients of the
// earlier slices and completes those of this one.
at::Tensor attend_in_context_backward(const ContextGroup& context, const SlicePlace& place,
                                      const at::Tensor& grad_output, const at::Tensor& dots,
                                      EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners);

}  // namespace penstock::nn
