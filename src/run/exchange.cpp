// SPDX-License-Identifier: Apache-2.0
#include "run/exchange.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "model/memory/exchange_traffic.h"
#include "model/memory/kernels.h"
#include "model/slice_halves.h"
#include "run/context.h"
#include "run/step_work.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"

namespace penstock::run {
namespace {

constexpr Bytes kAnnouncement = 2 * sizeof(std::int64_t);  // two words before every request

model::ExchangeTraffic layer_traffic(const Run& run, const schedule::Exchange& exchange, bool backward) {
  const auto slices = cached_slices(run, exchange.of.key.micro_batch);
  Tokens keys = 0;
  for (const model::SlicePart& part : model::parts_of_halves(slices, exchange.first_half, exchange.halves))
    keys += part.length;
  if (keys == 0) return {};
  const Tokens queries = run.slices[exchange.of.key.micro_batch][exchange.of.key.slice].length;
  const std::int64_t sequences = run.sequences();
  return model::exchange_traffic(cached_shape(run), run.precision, sequences * queries, sequences * keys,
                                 backward);
}

// Summed over the layers of the op; a backward recomputes the attention where it was not kept.
schedule::ExchangeBytes op_traffic(const Run& run, const schedule::Exchange& exchange) {
  const auto [first, count] = run.layers[exchange.of.key.stage];
  const auto forward = layer_traffic(run, exchange, false), backward = layer_traffic(run, exchange, true);
  schedule::ExchangeBytes bytes;
  const auto add = [&](const model::ExchangeTraffic& traffic) {
    bytes.request += traffic.request;
    bytes.reply += traffic.reply;
  };
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet& keep = run.keep[layer];
    if (!exchange.backward() || !keep.has(model::SavedTensor::AttentionOutput)) add(forward);
    if (exchange.backward()) add(backward);
  }
  return bytes;
}

// The larger of recomputed forward and backward, since layers are processed one at a time.
model::ExchangeTraffic most_traffic(const Run& run, const schedule::Exchange& exchange) {
  model::ExchangeTraffic most = layer_traffic(run, exchange, false);
  if (!exchange.backward()) return most;
  const model::ExchangeTraffic backward = layer_traffic(run, exchange, true);
  return {std::max(most.request, backward.request), std::max(most.reply, backward.reply)};
}

// Bytes that the owner copies before sending.
Bytes copies(const Run& run, const schedule::Exchange& exchange) {
  const auto slices = cached_slices(run, exchange.of.key.micro_batch);
  Bytes bytes = 0;
  for (const model::SlicePart& part : model::parts_of_halves(slices, exchange.first_half, exchange.halves)) {
    bytes += model::exchange_copies(cached_shape(run), run.precision, run.sequences(), part.length,
                                    slices[part.slice].length);
  }
  return bytes;
}

std::string layers_of_stages(const Run& run) {
  std::string text;
  for (const model::LayerRange& layers : run.layers)
    text += (text.empty() ? "" : ", ") + std::to_string(layers.count);
  return text;
}

std::string equal_layers_nearby(const Run& run) {
  const std::int64_t layers = run.shape().layers, stages = run.schedule.stages;
  const std::int64_t below = layers / stages * stages;
  if (below == layers) return "leave parallel.layers out, or set schedule.exchange = \"off\"";
  return "use model.layers = " + std::to_string(below) + " or " + std::to_string(below + stages) +
         ", or schedule.exchange = \"off\"";
}

}  // namespace

void check_exchange(const Run& run) {
  const ScheduleOptions& chosen = run.options.schedule;
  const std::string asked = "schedule.exchange = " + json_quote(chosen.exchange) + " needs ";
  if (!schedule::find_slot_grid(schedule::compute_only(run.schedule))) {
    throw InputError(
        asked + "a schedule in whose slots all devices run forwards together, then backwards together; " +
        name_of_schedule(run.options) +
        " has no such slots: use \"slimpipe\", or schedule.exchange = \"off\"");
  }
  const auto [fewest, greatest] = std::ranges::minmax(run.schedule.slices);
  if (fewest != greatest) {
    throw InputError(asked + "the same number of slices in every micro-batch; schedule.file = " +
                     json_quote(chosen.file) + " has from " + std::to_string(fewest) + " to " +
                     std::to_string(greatest) + ": use a file with one n, or schedule.exchange = \"off\"");
  }
  const auto [least, most] = std::ranges::minmax(run.layers, {}, &model::LayerRange::count);
  if (least.count != most.count) {
    throw InputError(asked + "the same number of layers on every stage; model.layers = " +
                     std::to_string(run.shape().layers) + " over " + std::to_string(run.schedule.stages) +
                     " stages makes " + layers_of_stages(run) + ": " + equal_layers_nearby(run));
  }
}

// Whether slices differ by a token at most; cut at multiples of a unit, they may differ by as much.
bool has_equal_slices(const Run& run) {
  return std::ranges::all_of(run.slices, [](const std::vector<model::TokenRange>& cut) {
    const auto [least, most] = std::ranges::minmax(cut, {}, &model::TokenRange::length);
    return most.length - least.length <= 1;
  });
}

schedule::ContextExchange exchange_of(const Run& run) {
  schedule::ContextExchange exchange{
      .mode = run.exchange,
      .limit = static_cast<int>(run.options.schedule.exchange_limit),
      .bytes = [&run](const schedule::Exchange& part) { return op_traffic(run, part); },
      .work = {}};
  const bool alike = run.documents.empty() && run.options.schedule.cut == "tokens" && has_equal_slices(run);
  if (!alike)
    exchange.work = [&run](const schedule::PassKey& pass) {
      return slice_work(run, run.documents, pass.key);
    };
  return exchange;
}

Bytes exchange_buffers(const Run& run, const schedule::Program& program, int device) {
  using Op = schedule::PassKey;
  std::map<Op, Bytes> own;
  std::map<int, std::map<Op, Bytes>> of_owner;
  std::set<int> partners;
  for (const schedule::Exchange& exchange : program.exchanges) {
    if (exchange.owner != device && exchange.partner != device) continue;
    const Op op = pass_of(exchange.of);
    const model::ExchangeTraffic traffic = most_traffic(run, exchange);
    if (exchange.partner == device) of_owner[exchange.owner][op] += traffic.request + traffic.reply;
    if (exchange.owner != device) continue;
    own[op] += traffic.reply + copies(run, exchange);
    partners.insert(exchange.partner);
  }
  const auto most = [](const std::map<Op, Bytes>& bytes) {
    Bytes greatest = 0;
    for (const auto& [op, sum] : bytes) greatest = std::max(greatest, sum);
    return greatest;
  };
  Bytes sum = most(own) + kAnnouncement * std::ssize(partners);
  for (const auto& [owner, bytes] : of_owner) sum += most(bytes) + 2 * kAnnouncement;  // the next is awaited
  return sum;
}

Bytes exchange_temporaries(const Run& run, const schedule::Program& program, int device) {
  const model::Shape shape = cached_shape(run);
  Bytes most = 0;
  for (const schedule::Exchange& exchange : program.exchanges) {
    if (exchange.partner != device) continue;
    const auto slices = cached_slices(run, exchange.of.key.micro_batch);
    model::AttentionSize size{.sequences = run.sequences(),
                              .tokens = run.slices[exchange.of.key.micro_batch][exchange.of.key.slice].length,
                              .heads = shape.heads,
                              .kv_heads = shape.kv_heads,
                              .head_dim = shape.head_dim()};
    for (const model::SlicePart& part : model::parts_of_halves(slices, exchange.first_half, exchange.halves))
      size.earlier.push_back(part.length);
    for (const bool backward : {false, exchange.backward()})
      most = std::max(most, model::served_temporaries(run.kernels, size, backward));
  }
  return most;
}

// A partner attends for all heads of this rank together, so they must belong to one shard.
void require_exchangeable(const Run& run) {
  require(
      run.mesh.context == 1 || run.options.parallel.cp_mode != "gather" ||
          run.exchange == schedule::ExchangeMode::Off,
      "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
          " moves attention to other devices, while parallel.cp_mode = \"gather\" keeps all keys on every "
          "context rank: use cp_mode = \"query\" or \"heads\", or schedule.exchange = \"off\"");
  require(run.options.data.mask != "documents" || run.exchange == schedule::ExchangeMode::Off ||
              !keys_in_two_ranges(run.options),
          "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
              " with data.mask = \"documents\" needs contiguous keys, which "
              "parallel.cp_mode = " +
              json_quote(run.options.parallel.cp_mode) +
              " cuts in two: use cp_mode = \"heads\", or schedule.exchange = \"off\"");
  const std::int64_t shards = run.shards_of_rank();
  require(shards == 1 || run.exchange == schedule::ExchangeMode::Off,
          "schedule.exchange = " + json_quote(run.options.schedule.exchange) +
              " needs one logical shard on each tensor-parallel rank; numerics.tensor = " +
              std::to_string(run.tensor_shards()) +
              " over parallel.tp = " + std::to_string(run.options.parallel.tp) + " makes " +
              std::to_string(shards) + ": use numerics.tensor = " + std::to_string(run.options.parallel.tp) +
              ", or schedule.exchange = \"off\"");
}

}  // namespace penstock::run
