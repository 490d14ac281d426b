// SPDX-License-Identifier: Apache-2.0
#include "sim/segments.h"

#include <algorithm>
#include <cmath>

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;
using What = Segment::What;

constexpr int kMostLayers = 8;
constexpr int kMostChunks = 4;  // of a layer's attention

// Numbers of product segments before and after the attention of one layer.
struct LayerProducts {
  int before = 0;
  int after = 0;
};

LayerProducts products_of(OpKind kind) {
  switch (kind) {
    case OpKind::Forward:
      return {1, 3};
    case OpKind::Backward:
      return {3, 5};
    case OpKind::BackwardInput:
      return {3, 1};
    default:
      return {4, 0};
  }
}

class Layer {
 public:
  explicit Layer(std::vector<Segment>& segments) : segments_(segments) {}
  void add(What what) { segments_.push_back({what, 0}); }
  void work(What what, Seconds seconds, int pieces) {
    if (seconds <= 0) return;
    for (int i = 0; i < pieces; ++i) segments_.push_back({what, seconds / pieces});
  }

 private:
  std::vector<Segment>& segments_;
};

}  // namespace

int simulated_layers(const AttentionShare& share) { return std::clamp(share.layers, 1, kMostLayers); }

Seconds seconds_of_layer(const AttentionShare& attention, double share) {
  return attention.seconds / simulated_layers(attention) * share;
}

std::vector<Segment> segments_of(const Costs& costs, int device, std::uint32_t index, const Op& op,
                                 double away) {
  const Seconds seconds = costs.seconds(device, index, op);
  if (!is_action(op.kind)) return {{What::Work, seconds}};
  const AttentionShare share = costs.attention(device, index, op);
  const int layers = simulated_layers(share);
  const LayerProducts products = products_of(op.kind);
  const Seconds piece = (seconds - share.seconds) / layers / (products.before + products.after);
  const Seconds at_home = seconds_of_layer(share, 1 - away);
  const int chunks = static_cast<int>(std::lround((1 - away) * op.key.slice)) + 1;
  std::vector<Segment> segments;
  Layer layer(segments);
  for (int i = 0; i < layers; ++i) {
    if (away > 0) layer.add(What::PostKeys);
    layer.work(What::Work, piece * products.before, products.before);
    if (away > 0) layer.add(What::PostQueries);
    layer.work(What::Attention, at_home, std::clamp(chunks, 1, kMostChunks));
    layer.add(What::Merge);
    layer.work(What::Work, piece * products.after, products.after);
  }
  return segments;
}

}  // namespace penstock::sim
