// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rope.h"

#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

// Each half of a head is read and written in its own packs.
at::Tensor by_halves(const at::Tensor& x) { return x.unflatten(-1, {2, x.size(-1) / 2}); }

// Both tensors are [b, H, T, d] views with last stride 1.
template <class In, class Out>
void turn_as(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
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

void turn(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
          at::Tensor& out) {
  for_element_type(out.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    if (in.scalar_type() == out.scalar_type()) {
      turn_as<Element, Element>(in, table, positions, sign, out);
    } else {
      turn_as<Accumulator<Element>, Element>(in, table, positions, sign, out);
    }
  });
}

}  // namespace penstock::nn::kernels
