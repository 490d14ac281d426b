// SPDX-License-Identifier: Apache-2.0
#include "nn/earlier_part.h"

#include <ATen/ops/zeros.h>

#include "backend/memory.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"

namespace penstock::nn {
namespace {

// `all`: keys or values of the whole slice; the gradient covers a part of it.
void add(at::Tensor& sum, const at::Tensor& all, const model::SlicePart& part, const at::Tensor& gradient,
         model::Category category) {
  if (part.length == all.size(2)) {
    kernels::accumulate_or_take(sum, gradient);
  } else {
    if (!sum.defined())
      sum = at::zeros(all.sizes(), all.options().dtype(kernels::accumulator_type(all.scalar_type())));
    at::Tensor place = sum.narrow(2, part.begin, part.length);
    kernels::accumulate(place, gradient);
  }
  backend::recount(sum, category);
}

}  // namespace

KeyValues keys_and_values(const LayerRecord& slice, const model::SlicePart& part) {
  return {slice[Saved::Key].narrow(2, part.begin, part.length),
          slice[Saved::Value].narrow(2, part.begin, part.length)};
}

void add_gradients(LayerRecord& slice, const model::SlicePart& part, const KeyValues& gradients,
                   model::Category category) {
  add(slice.key_gradient, slice[Saved::Key], part, gradients.key, category);
  add(slice.value_gradient, slice[Saved::Value], part, gradients.value, category);
}

}  // namespace penstock::nn
