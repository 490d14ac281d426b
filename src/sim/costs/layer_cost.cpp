// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/costs/kernel_cost.h"
#include "sim/costs/layer_traffic.h"

namespace penstock::sim {
namespace {

using model::SavedTensor;

// Rows per expert and number of experts on this device; a dense MLP is one expert.
struct ExpertProducts {
  double rows, count;
};
ExpertProducts expert_products(const Site& site) {
  const double experts = as_double(site.shape().experts);
  const double tokens = site.folds_experts() ? site.tokens / site.t : site.tokens;
  const double routed = tokens * as_double(site.shape().experts_per_token) * site.expert_load();
  return {routed * site.slice.mesh.expert / experts, experts / site.slice.mesh.expert};
}

// A pass launches each logical shard's kernels, and three for every further expert and forward: gates,
// activation and output, or gate, up and output if one activation serves all.
double launches(const Site& site, double dense, double forwards) {
  const bool further = site.has_experts() && !site.engine.grouped_experts;
  const double of_experts = further ? 3 * forwards * (expert_products(site).count - 1) : 0;
  return as_double(site.slice.shards) * (dense + of_experts);
}

struct Products {
  Seconds qkv, output, fc1, fc2;
  Seconds total() const { return qkv + output + fc1 + fc2; }
};

template <class Product>
Products all_products(const Site& site, Product product) {
  const double shards = as_double(site.slice.shards), all = site.t * shards, h = site.hidden();
  const double f = as_double(site.shape().ffn) / (site.folds_experts() ? 1.0 : all);
  const ExpertProducts expert = expert_products(site);
  Products products{shards * product(site.tokens, (site.queries() + 2 * site.keys()) / all, h),
                    shards * product(site.tokens, h, site.queries() / all),
                    shards * expert.count * product(expert.rows, site.gates() * f, h),
                    shards * expert.count * product(expert.rows, h, f)};
  if (const double shared = as_double(site.shape().shared_ffn); shared > 0) {
    products.fc1 += product(site.tokens / site.t, site.gates() * shared, h);
    products.fc2 += product(site.tokens / site.t, h, shared);
  }
  return products;
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
  if (site.engine.flash_attention()) return flash_attention(site.hardware, site.flash());
  return plain_attention(site.hardware, site.plain());
}

Seconds attention_backward(const Site& site) {
  if (site.engine.flash_attention()) return flash_attention_backward(site.hardware, site.flash());
  return plain_attention_backward(site.hardware, site.plain());
}

// Traffic is counted for 16-bit numbers and scaled to the training precision.
double elementwise_bytes(const Site& site, const ElementwiseBytes& bytes) {
  const double hidden_tokens = site.engine.sequence_parallel ? site.tokens / site.t : site.tokens;
  const double passes = site.has_experts() ? site.engine.passes_over_rows(site.slice.mesh.expert > 1) : 0;
  const double routed = 2.0 * passes * site.hidden() * as_double(site.shape().experts_per_token);
  return site.engine.elementwise * site.hardware.number_bytes() / 2 *
         (bytes.hidden * hidden_tokens + (bytes.split + routed) * site.tokens / site.t);
}

LayerTerms forward_terms(const Site& site) {
  LayerTerms terms;
  terms.matrix = forward_products(site).total();
  terms.attention = attention_forward(site);
  terms.elementwise = layer_elementwise(
      site.hardware, elementwise_bytes(site, forward_traffic(site.engine, site.shape(), site.slice.family)),
      site.own_hidden_bytes());
  terms.tensor = (site.folds_experts() ? 1 : 2) * (tensor_pass(site) + scatter_pass(site));
  terms.context = context_traffic(site).forward;
  terms.expert = expert_traffic(site);
  terms.gaps = gaps(site.hardware, launches(site, forward_kernels(site.slice.family), 1));
  return terms;
}

LayerTerms backward_terms(const Site& site) {
  const bool regathers = site.engine.sequence_parallel && site.engine.regathers_inputs;
  LayerTerms terms;
  terms.matrix = backward_products(site).total();
  terms.attention = attention_backward(site);
  terms.elementwise = layer_elementwise_backward(
      site.hardware, elementwise_bytes(site, backward_traffic(site.engine, site.shape(), site.slice.family)),
      site.own_hidden_bytes());
  terms.tensor =
      ((regathers ? 4 : 2) * tensor_pass(site) + 2 * scatter_pass(site)) / (site.folds_experts() ? 2 : 1);
  terms.context = context_traffic(site).backward;
  terms.expert = expert_traffic(site);
  terms.gaps = gaps(site.hardware, launches(site, backward_kernels(site.slice.family), 2));
  return terms;
}

bool repeats_layer(const Site& site) {
  const model::KeepSet full = model::keep_of(model::Policy::Full), keep = site.slice.keep;
  return site.engine.whole_again &&
         (keep == full || (site.slice.sliced && keep == full.with(SavedTensor::KeyValue)));
}

// Number of product inputs that recomputation gathers: that of Q, K and V, and that of the MLP.
int gathered_again(const Site& site) {
  const bool attention = site.missing(SavedTensor::Query) || !site.has_keys();
  return attention + (site.missing(SavedTensor::GateUp) && !site.folds_experts());
}

// Inputs gathered by recomputation also serve the weight gradients, unless a layer is repeated as a whole.
bool gathers_once(const Site& site) {
  return site.engine.sequence_parallel && site.engine.regathers_inputs && !site.engine.whole_again;
}

// Number of product inputs and output gradients that W gathers again. B gathers only the inputs, half of that
// number, unless recomputation has gathered them.
int gathered_for_weights(const Site& site) {
  if (!gathers_once(site)) return 0;
  return site.folds_experts() ? 2 : 4;
}

// The recomputation of all tensors of a record that are not kept. K and V of slices are in the cache.
LayerTerms recompute_terms(const Site& site) {
  if (repeats_layer(site)) return forward_terms(site);
  const auto missing = [&](SavedTensor tensor) { return site.missing(tensor); };
  const bool has_keys = site.has_keys();
  const Products products = forward_products(site);
  const double number = site.hardware.number_bytes();
  const double norm = 2 * number * site.hidden(), hidden_tokens = site.tokens / site.t;
  const double width = as_double(site.shape().ffn * site.shape().experts_per_token + site.shape().shared_ffn);
  const double mlp = number * width * site.tokens / site.t;
  const auto passes = [&](double bytes) {
    return layer_elementwise(site.hardware, bytes, site.own_hidden_bytes());
  };
  LayerTerms terms;
  const bool norm_one = missing(SavedTensor::NormOneOutput), norm_two = missing(SavedTensor::NormTwoOutput);
  terms.elementwise = passes((norm_one + norm_two) * norm * hidden_tokens);
  // The backward of head norms needs the keys before the norm, which are kept with the queries.
  const bool queries = missing(SavedTensor::Query), normed = site.shape().head_norms;
  const double keys = (has_keys ? queries && normed : 2) * site.keys();
  terms.matrix += products.qkv * ((queries * site.queries() + keys) / (site.queries() + 2 * site.keys()));
  if (missing(SavedTensor::AttentionOutput)) {
    terms.attention += attention_forward(site);
    const ContextTraffic traffic = context_traffic(site);
    terms.context += has_keys ? traffic.again : traffic.forward;
  }
  if (missing(SavedTensor::NormTwoInput)) {
    terms.matrix += products.output;
    terms.tensor += scatter_pass(site);
  }
  if (missing(SavedTensor::GateUp)) terms.matrix += products.fc1;
  if (!gathers_once(site)) terms.tensor += gathered_again(site) * tensor_pass(site);
  if (missing(SavedTensor::Dispatched)) terms.expert += 0.5 * expert_traffic(site);
  if (missing(SavedTensor::Product)) terms.elementwise += passes(swiglu_passes_again(site.engine) * mlp);
  if (site.slice.recompute_scores) terms.attention += attention_forward(site);
  return terms;
}

}  // namespace

LayerCost layer_cost(const LayerSlice& slice, const Hardware& hardware, const Engine& engine) {
  const Site site = site_of(slice, hardware, engine);
  LayerCost cost{forward_terms(site), backward_terms(site), recompute_terms(site)};
  // I frees the inputs that it gathers for recomputation, so W gathers them again.
  const int again = gathered_for_weights(site) / 2 + gathered_again(site);
  if (gathers_once(site)) cost.split = again * tensor_pass(site);
  // A host that issues kernels more slowly than they run is the bottleneck; a backward has twice the kernels.
  const Seconds floor = 1e-3 * hardware.kernels.layer_dispatch_ms;
  cost.forward.gaps += std::max(0.0, floor - cost.forward.total());
  cost.backward.gaps += std::max(0.0, 2 * floor - cost.backward.total());
  const Seconds host = 1e-3 * (engine.layer_ms + (site.has_experts() ? engine.expert_ms : 0));
  cost.forward.gaps += host / 3;
  cost.backward.gaps += 2 * host / 3;
  return cost;
}

Seconds weight_backward(const LayerSlice& slice, const Hardware& hardware, const Engine& engine) {
  const Site site = site_of(slice, hardware, engine);
  const auto product = [&](double m, double n, double k) {
    return matrix_product_weights(hardware, m, n, k, engine.accumulate_bytes);
  };
  return all_products(site, product).total() + gathered_for_weights(site) * tensor_pass(site);
}

Seconds output_layer(const LayerSlice& slice, const Hardware& hardware, const Engine& engine,
                     double columns) {
  const double h = as_double(slice.shape.hidden);
  const Seconds products =
      matrix_product(hardware, slice.tokens, columns, h) +
      matrix_product_backward(hardware, slice.tokens, columns, h, engine.accumulate_bytes);
  return products + elementwise(hardware, 32.0 * slice.tokens * columns) +
         3 * hidden_pass(slice, hardware, engine);
}

Seconds embedding(const LayerSlice& slice, const Hardware& hardware, const Engine& engine) {
  return elementwise(hardware, 5 * hardware.number_bytes() * slice.tokens * as_double(slice.shape.hidden)) +
         (engine.sequence_parallel && !engine.exact ? 1 : 2) * hidden_pass(slice, hardware, engine);
}

Seconds hidden_pass(const LayerSlice& slice, const Hardware& hardware, const Engine& engine) {
  return tensor_pass(site_of(slice, hardware, engine));
}

}  // namespace penstock::sim
