// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rope.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

// The halves of a head are read and written by packs of their own.
at::Tensor by_halves(const at::Tensor& x) { return x.unflatten(-1, {2, x.size(-1) / 2}); }

// Both tensors seen as [b, H, T, d] with last stride 1.
template <class In, class Out>
void turn(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
          const at::Tensor& out) {
  using Number = Accumulator<Out>;
  with_packs<Out>({by_halves(in), by_halves(out), table.cosine, table.sine}, [&](auto width) {
    launch(
        TurnTokens<In, Out, width>{heads_of<const In>(in), heads_of<Out>(out), read<Number>(table.cosine),
                                   read<Number>(table.sine), read<std::int64_t>(positions.starts),
                                   positions.starts.defined() ? positions.starts.size(1) : 0, positions.first,
                                   positions.second, positions.half, in.size(3) / 2, Number(sign)},
        in.size(0) * in.size(2));
  });
}

}  // namespace

at::Tensor rope(const at::Tensor& x, const RotaryTable& table, std::int64_t heads,
                const Positions& positions) {
  const KernelTimer timer(Kernel::Rotation, memory_work(x, x));
  PENSTOCK_CHECK(x.size(1) == 0 || positions.of(x.size(1) - 1) < table.cosine.size(0),
                 "the rotary table ends before these positions");
  const std::int64_t b = x.size(0), tokens = x.size(1), d = x.size(2) / heads;
  at::Tensor result = at::empty({b, heads, tokens, d}, x.options());
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    turn<Element, Element>(x.view({b, tokens, heads, d}).transpose(1, 2), table, positions, 1.0, result);
  });
  return result;
}

at::Tensor rope_backward(const at::Tensor& grad, const RotaryTable& table, const Positions& positions,
                         at::ScalarType type) {
  const KernelTimer timer(Kernel::RotationBackward, memory_work(grad, grad));
  check_head_rows(grad);
  const std::int64_t b = grad.size(0), heads = grad.size(1), tokens = grad.size(2), d = grad.size(3);
  at::Tensor result = at::empty({b * tokens, heads * d}, grad.options().dtype(type));
  const at::Tensor rows = result.view({b, tokens, heads, d}).transpose(1, 2);
  for_element_type(type, [&](auto element) {
    using Element = decltype(element);
    if (grad.scalar_type() == type) {
      turn<Element, Element>(grad, table, positions, -1.0, rows);
    } else {
      turn<Accumulator<Element>, Element>(grad, table, positions, -1.0, rows);
    }
  });
  return result;
}

}  // namespace penstock::nn::kernels
