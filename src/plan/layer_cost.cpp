// SPDX-License-Identifier: Apache-2.0
#include "plan/layer_cost.h"

#include <algorithm>

#include "plan/groups.h"
#include "plan/kernel_cost.h"

namespace penstock::plan {
namespace {

using model::SavedTensor;

double as_double(std::int64_t value) { return static_cast<double>(value); }

// A layer on one device: sizes and who computes it.
struct Site {
  const Workload& workload;
  const Layout& layout;
  const Hardware& hardware;
  const Engine& engine;
  double tokens;  // of the slice, in the whole tensor group
  double t;

  const model::Shape& shape() const { return workload.model.shape; }
  double hidden() const { return as_double(shape().hidden); }
  double queries() const { return as_double(shape().query_width()); }
  double keys() const { return as_double(shape().kv_width()); }
  double hidden_bytes() const { return hardware.number_bytes() * tokens * hidden(); }
  // An average slice: half of the other slices are before it.
  FlashAttention flash() const {
    const double sequence = as_double(workload.seq_len), own = sequence / layout.slices;
    return {tokens, own, 0.5 * (layout.slices - 1), queries() / t};
  }
  double gates() const { return workload.model.family == Family::Llama ? 2.0 : 1.0; }
};

// Rows and number of the products of one expert on this device; a dense MLP is one expert.
struct ExpertProducts {
  double rows, count;
};
ExpertProducts expert_products(const Site& site) {
  const double experts = as_double(site.shape().experts);
  const double routed = site.tokens * as_double(site.shape().experts_per_token);
  return {routed * site.layout.spread.expert / experts, experts / site.layout.spread.expert};
}

struct Products {
  Seconds qkv, output, fc1, fc2;
  Seconds total() const { return qkv + output + fc1 + fc2; }
};

template <class Product>
Products all_products(const Site& site, Product product) {
  const double h = site.hidden(), f = as_double(site.shape().ffn) / site.t;
  const ExpertProducts expert = expert_products(site);
  return {product(site.tokens, (site.queries() + 2 * site.keys()) / site.t, h),
          product(site.tokens, h, site.queries() / site.t),
          expert.count * product(expert.rows, site.gates() * f, h),
          expert.count * product(expert.rows, h, f)};
}

Products forward_products(const Site& site) {
  return all_products(site,
                      [&](double m, double n, double k) { return matrix_product(site.hardware, m, n, k); });
}

Products backward_products(const Site& site) {
  return all_products(site, [&](double m, double n, double k) {
    return matrix_product_backward(site.hardware, m, n, k, site.engine.accumulate_bytes);
  });
}

Seconds attention_forward(const Site& site) {
  if (site.engine.flash_attention) return flash_attention(site.hardware, site.flash());
  const double s = as_double(site.workload.seq_len), width = site.queries() / site.t;
  const double heads = as_double(site.shape().heads) / site.t;
  return plain_attention(site.hardware, site.tokens, s, width, heads, site.engine.dropout);
}

Seconds attention_backward(const Site& site) {
  if (site.engine.flash_attention) return flash_attention_backward(site.hardware, site.flash());
  const double s = as_double(site.workload.seq_len), width = site.queries() / site.t;
  const double heads = as_double(site.shape().heads) / site.t;
  return plain_attention_backward(site.hardware, site.tokens, s, width, heads, site.engine.dropout);
}

// Traffic is counted for 16-bit numbers.
double elementwise_bytes(const Site& site, const ElementwiseBytes& bytes) {
  const double hidden_tokens = site.engine.sequence_parallel ? site.tokens / site.t : site.tokens;
  return site.hardware.number_bytes() / 2 *
         (bytes.hidden * hidden_tokens + bytes.split * site.tokens / site.t);
}

double tensor_exposed(const Site& site) {
  return site.engine.tensor_overlap ? site.hardware.efficiency.tensor_exposed : 1.0;
}

// One all-gather or reduce-scatter of the hidden state.
Seconds tensor_pass(const Site& site) {
  if (site.t == 1) return 0;
  const Placement group = tensor_group(site.layout.spread, site.hardware.node.gpus);
  return tensor_exposed(site) * ring_pass(site.hardware, group, site.hidden_bytes());
}

// Keys and values to all (forward once; backward once more and their gradients back), or, where keys stay,
// the queries there and their output back (backward: queries, output and its gradient there, the queries'
// gradient back). Keys' and values' traffic hides behind the QKV product unless queries share heads, as in
// the ATC'24 engine.
struct ContextTraffic {
  Seconds forward, backward;
};
ContextTraffic context_traffic(const Site& site) {
  const auto& spread = site.layout.spread;
  if (spread.context == 1) return {0, 0};
  const Placement group = context_group(spread, site.hardware.node.gpus);
  const double all_tokens = 2.0 * site.tokens * spread.context / site.t;
  if (site.engine.queries_travel && site.layout.slices > 1) {
    const Seconds pass = ring_pass(site.hardware, group, all_tokens * site.queries());
    return {2 * pass, 4 * pass};
  }
  const double earlier = site.layout.slices > 1 ? 0.5 * (site.layout.slices + 1) : 1.0;
  const double exposed = site.shape().kv_heads == site.shape().heads ? tensor_exposed(site) : 1.0;
  const Seconds pass = exposed * ring_pass(site.hardware, group, earlier * all_tokens * 2 * site.keys());
  return {pass, 2 * pass};
}

// Tokens to their experts and back.
Seconds expert_traffic(const Site& site) {
  const auto& shape = site.shape();
  if (shape.experts == 1 || site.layout.spread.expert == 1) return 0;
  const Placement group = expert_group(site.layout.spread, site.hardware.node.gpus);
  const double bytes = site.hidden_bytes() / site.t * as_double(shape.experts_per_token);
  return 2.0 * all_to_all(site.hardware, group, bytes);
}

LayerTerms forward_terms(const Site& site) {
  LayerTerms terms;
  terms.matrix = forward_products(site).total();
  terms.attention = attention_forward(site);
  terms.elementwise = layer_elementwise(
      site.hardware, elementwise_bytes(site, forward_traffic(site.engine, site.workload.model)),
      site.hidden_bytes());
  terms.tensor = 4 * tensor_pass(site);
  terms.context = context_traffic(site).forward;
  terms.expert = expert_traffic(site);
  terms.gaps = gaps(site.hardware, forward_kernels(site.workload.model));
  return terms;
}

LayerTerms backward_terms(const Site& site) {
  const bool regathers = site.engine.sequence_parallel && site.engine.regathers_inputs;
  LayerTerms terms;
  terms.matrix = backward_products(site).total();
  terms.attention = attention_backward(site);
  terms.elementwise = layer_elementwise_backward(
      site.hardware, elementwise_bytes(site, backward_traffic(site.engine, site.workload.model)),
      site.hidden_bytes());
  terms.tensor = (regathers ? 6 : 4) * tensor_pass(site);
  terms.context = context_traffic(site).backward;
  terms.expert = expert_traffic(site);
  terms.gaps = gaps(site.hardware, backward_kernels(site.workload.model));
  return terms;
}

// Everything that has to be formed again so that the kept tensors and these make up a whole record. K and V
// of slices are in the cache.
LayerTerms recompute_terms(const Site& site) {
  const model::KeepSet keep = site.layout.keep;
  if (keep == model::keep_of(model::Policy::Full)) return forward_terms(site);
  const auto missing = [&](SavedTensor tensor) { return !keep.has(tensor); };
  const Products products = forward_products(site);
  const double norm = 4.0 * site.hidden(), hidden_tokens = site.tokens / site.t;
  const double mlp =
      2.0 * as_double(site.shape().ffn * site.shape().experts_per_token) * site.tokens / site.t;
  LayerTerms terms;
  const bool norm_one = missing(SavedTensor::NormOneOutput), norm_two = missing(SavedTensor::NormTwoOutput);
  terms.elementwise = elementwise(site.hardware, (norm_one + norm_two) * norm * hidden_tokens);
  if (missing(SavedTensor::Query)) {
    const bool cached = site.layout.slices > 1 || !missing(SavedTensor::KeyValue);
    terms.matrix += products.qkv * (cached ? site.queries() / (site.queries() + 2 * site.keys()) : 1.0);
    terms.tensor += tensor_pass(site);
  }
  if (missing(SavedTensor::AttentionOutput)) {
    terms.attention += attention_forward(site);
    terms.context += context_traffic(site).forward;
  }
  if (missing(SavedTensor::NormTwoInput)) {
    terms.matrix += products.output;
    terms.tensor += tensor_pass(site);
  }
  if (missing(SavedTensor::GateUp)) {
    terms.matrix += products.fc1;
    terms.tensor += tensor_pass(site);
    terms.expert += 0.5 * expert_traffic(site);
  }
  if (missing(SavedTensor::Product)) terms.elementwise += elementwise(site.hardware, 5 * mlp);
  if (site.layout.recompute_scores) terms.attention += attention_forward(site);
  return terms;
}

}  // namespace

LayerTerms& LayerTerms::operator+=(const LayerTerms& other) {
  matrix += other.matrix;
  attention += other.attention;
  elementwise += other.elementwise;
  tensor += other.tensor;
  context += other.context;
  expert += other.expert;
  gaps += other.gaps;
  return *this;
}

LayerCost layer_cost(const Workload& workload, const Layout& layout, const Hardware& hardware,
                     const Engine& engine) {
  const Site site{workload,
                  layout,
                  hardware,
                  engine,
                  group_tokens(workload, layout),
                  static_cast<double>(layout.spread.tensor)};
  LayerCost cost{forward_terms(site), backward_terms(site), recompute_terms(site)};
  cost.weights = 0.5 * cost.backward.matrix;
  // A host that issues kernels more slowly than they run sets the pace; a backward has twice a forward's.
  const Seconds floor = 1e-3 * hardware.kernels.layer_dispatch_ms;
  cost.forward.gaps += std::max(0.0, floor - cost.forward.total());
  cost.backward.gaps += std::max(0.0, 2 * floor - cost.backward.total());
  return cost;
}

}  // namespace penstock::plan
