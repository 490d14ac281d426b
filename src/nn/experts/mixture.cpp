// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/mixture.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/device.h"
#include "base/whole.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/swiglu.h"

namespace penstock::nn {
namespace {

// Calls work(expert, first, count) for each expert that has rows, in ascending order.
template <class Work>
void for_experts(const Mixture& mixture, const std::vector<std::int64_t>& counts, Work&& work) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) work(mixture.experts[i], first, counts[i]);
    first += counts[i];
  }
}

// oneDNN compiles a bf16 product for every number of rows, and keeps a megabyte or two of code for each. So
// row counts are rounded up to a multiple of 16 and, from 128 on, to eight steps per octave.
std::int64_t rounded_rows(std::int64_t count, at::ScalarType type) {
  if (type != at::kBFloat16) return count;
  constexpr std::int64_t kLeast = 16;
  const auto octave = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
  const std::int64_t step = std::max(kLeast, octave / 8);
  return round_up(count, step);
}

// Calls product(result, inputs...) for one expert's rows, their number rounded up. The additional rows belong
// to the next experts, whose products come later; past the last row, padded copies are used.
template <class Product, class... Inputs>
void for_rows_of(at::Tensor& result, std::int64_t first, std::int64_t count, Product&& product,
                 const Inputs&... inputs) {
  const std::int64_t rounded = rounded_rows(count, result.scalar_type());
  if (first + rounded <= result.size(0)) {
    at::Tensor rows = result.narrow(0, first, rounded);
    return product(rows, inputs.narrow(0, first, rounded)...);
  }
  const auto copied = [&](const at::Tensor& input) {
    at::Tensor copy = at::zeros({rounded, input.size(1)}, input.options());
    copy.narrow(0, 0, count).copy_(input.narrow(0, first, count));
    return copy;
  };
  at::Tensor rows = at::empty({rounded, result.size(1)}, result.options());
  product(rows, copied(inputs)...);
  result.narrow(0, first, count).copy_(rows.narrow(0, 0, count));
}

auto product_with(const Parameter& parameter) {
  return [weight = parameter.weight](at::Tensor& result, const at::Tensor& rows) {
    kernels::product_into(result, rows, weight);
  };
}

at::Tensor room(const at::Tensor& rows, std::int64_t width) {
  return at::empty({rows.size(0), width}, rows.options());
}

void choose_experts(const Mixture& mixture, const at::Tensor& input, MixtureRecord& record) {
  // Rounded scores would route tokens differently.
  record.scores = backend::to_host(kernels::product(kernels::in_accumulator_type(input),
                                                    kernels::in_accumulator_type(mixture.router->weight)));
  record.routing = route(record.scores, mixture.chosen, mixture.weights, mixture.forced);
  record.order = order_by_expert(record.routing.experts, mixture.router->sizes[0]);
}

// Computes what the record lacks, from the scores to gate and up. The shared expert computes while ranks
// exchange their counts.
void complete(const Mixture& mixture, const at::Tensor& input, MixtureRecord& record) {
  const ExpertGroup& group = *mixture.group;
  const bool choose = !record.scores.defined(), send = !record.dispatched.defined();
  const bool compute = !record.gate.defined();
  RowsUnderWay counts, weights, rows;
  if (choose) {
    choose_experts(mixture, input, record);
    counts = group.begin_route(record.order.counts);
  }
  if (compute && mixture.shared.defined()) complete(mixture.shared, input, record.shared);
  if (choose) {
    record.route = group.end_route(record.order.counts, std::move(counts));
    weights =
        group.begin_dispatch(by_row(backend::to_device(record.routing.weights), record.order), record.route);
  }
  if (send) rows = group.begin_dispatch(rows_of_tokens(input, record.order), record.route);
  if (choose) record.row_weights = group.end_dispatch(std::move(weights), record.route);
  if (send) record.dispatched = group.end_dispatch(std::move(rows), record.route);
  if (!compute) return;
  const std::int64_t width = mixture.experts.front().gate->sizes[0];
  record.gate = room(record.dispatched, width);
  record.up = room(record.dispatched, width);
  for_experts(mixture, record.route.counts,
              [&](const Expert& expert, std::int64_t first, std::int64_t count) {
                for_rows_of(record.gate, first, count, product_with(*expert.gate), record.dispatched);
                for_rows_of(record.up, first, count, product_with(*expert.up), record.dispatched);
              });
}

// Returns the sums over each token's experts, from a complete record.
at::Tensor chosen_forward(const Mixture& mixture, const at::Tensor& input, MixtureRecord& record) {
  record.product = kernels::weighted_swiglu(record.gate, record.up, record.row_weights);
  at::Tensor results = room(record.dispatched, input.size(1));
  for_experts(mixture, record.route.counts,
              [&](const Expert& expert, std::int64_t first, std::int64_t count) {
                for_rows_of(results, first, count, product_with(*expert.down), record.product);
              });
  return sums_of_rows(mixture.group->begin_combine(std::move(results), record.route).arrived(), record.order);
}

at::Tensor product_gradients(const Mixture& mixture, const MixtureRecord& record,
                             const at::Tensor& grad_rows) {
  at::Tensor grad_product = room(grad_rows, record.gate.size(1));
  for_experts(mixture, record.route.counts,
              [&](const Expert& expert, std::int64_t first, std::int64_t count) {
                const auto down = [&](at::Tensor& result, const at::Tensor& rows) {
                  kernels::product_backward_into(result, rows, expert.down->weight);
                };
                for_rows_of(grad_product, first, count, down, grad_rows);
              });
  return grad_product;
}

at::Tensor input_gradients(const Mixture& mixture, const MixtureRecord& record, const at::Tensor& grad_gate,
                           const at::Tensor& grad_up) {
  at::Tensor grad_dispatched = room(record.dispatched, record.dispatched.size(1));
  for_experts(mixture, record.route.counts,
              [&](const Expert& expert, std::int64_t first, std::int64_t count) {
                const auto both = [&](at::Tensor& result, const at::Tensor& gate, const at::Tensor& up) {
                  kernels::product_backward_into(result, gate, expert.gate->weight);
                  kernels::add_product_backward(result, up, expert.up->weight);
                };
                for_rows_of(grad_dispatched, first, count, both, grad_gate, grad_up);
              });
  return grad_dispatched;
}

// Consumes a complete record, except for its shared expert.
at::Tensor chosen_backward_input(const Mixture& mixture, at::Tensor input, const at::Tensor& grad_output,
                                 const RouteLosses& losses, MixtureRecord& record,
                                 MixtureWeightRecord& pending) {
  const ExpertGroup& group = *mixture.group;
  at::Tensor grad_rows = group.end_dispatch(
      group.begin_dispatch(rows_of_tokens(grad_output, record.order), record.route), record.route);
  at::Tensor grad_product = product_gradients(mixture, record, grad_rows);
  const at::Tensor of_weights = kernels::weighted_swiglu_backward(grad_product, record.gate, record.up,
                                                                  record.row_weights, record.product);
  at::Tensor grad_gate = std::move(record.gate), grad_up = std::move(record.up);
  grad_product.reset();
  at::Tensor grad_dispatched = input_gradients(mixture, record, grad_gate, grad_up);
  // The router computes while the rows are in flight.
  RowsUnderWay weights = group.begin_combine(of_weights, record.route);
  RowsUnderWay rows = group.begin_combine(std::move(grad_dispatched), record.route);
  const at::Tensor grad_weights = backend::to_host(by_slot(weights.arrived(), record.order));
  at::Tensor grad_scores = route_backward(grad_weights, record.scores, record.routing, mixture.weights);
  add_route_losses_backward(grad_scores, record.scores, record.routing, losses);
  grad_scores = backend::to_device(grad_scores);
  const at::Tensor of_router =
      kernels::product_backward(grad_scores, kernels::in_accumulator_type(mixture.router->weight));
  at::Tensor grad_input = sums_of_rows(rows.arrived(), record.order, of_router);
  pending = {.counts = std::move(record.route.counts),
             .input = std::move(input),
             .grad_scores = std::move(grad_scores),
             .dispatched = std::move(record.dispatched),
             .grad_rows = std::move(grad_rows),
             .product = std::move(record.product),
             .grad_gate = std::move(grad_gate),
             .grad_up = std::move(grad_up)};
  return grad_input;
}

}  // namespace

at::Tensor mixture_forward(const Mixture& mixture, const at::Tensor& input, MixtureRecord& record) {
  complete(mixture, input, record);
  at::Tensor output = chosen_forward(mixture, input, record);
  if (mixture.shared.defined()) add_shared_expert(mixture.shared, output, record.shared);
  return output;
}

at::Tensor mixture_backward_input(const Mixture& mixture, at::Tensor input, const at::Tensor& grad_output,
                                  const RouteLosses& losses, MixtureRecord record,
                                  MixtureWeightRecord& pending) {
  complete(mixture, input, record);
  at::Tensor grad_input =
      chosen_backward_input(mixture, std::move(input), grad_output, losses, record, pending);
  if (mixture.shared.defined())
    pending.shared =
        add_shared_expert_backward(mixture.shared, grad_output, std::move(record.shared), grad_input);
  return grad_input;
}

void mixture_backward_weight(const Mixture& mixture, MixtureWeightRecord pending) {
  kernels::accumulate_weight_gradient(mixture.router->gradient, pending.grad_scores,
                                      kernels::in_accumulator_type(pending.input));
  for_experts(mixture, pending.counts, [&](const Expert& expert, std::int64_t first, std::int64_t count) {
    const auto rows = [&](const at::Tensor& all) { return all.narrow(0, first, count); };
    kernels::accumulate_weight_gradient(expert.down->gradient, rows(pending.grad_rows),
                                        rows(pending.product));
    kernels::accumulate_weight_gradient(expert.gate->gradient, rows(pending.grad_gate),
                                        rows(pending.dispatched));
    kernels::accumulate_weight_gradient(expert.up->gradient, rows(pending.grad_up), rows(pending.dispatched));
  });
  if (mixture.shared.defined())
    shared_expert_backward_weight(mixture.shared, pending.input, std::move(pending.shared));
}

}  // namespace penstock::nn
