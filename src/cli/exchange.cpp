// SPDX-License-Identifier: Apache-2.0
#include "cli/exchange.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "model/help_traffic.h"
#include "model/kernel_memory.h"
#include "model/slice_halves.h"
#include "nn/kernel_setting.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"

namespace penstock::cli {
namespace {

constexpr Bytes kAnnouncement = 2 * sizeof(std::int64_t);  // two words ahead of every request

model::HelpTraffic layer_traffic(const ResolvedRun& run, const schedule::Help& help, bool backward) {
  const auto slices = cut(run, run.schedule.slices[static_cast<std::size_t>(help.of.micro_batch)]);
  Tokens keys = 0;
  for (const model::SlicePart& part : model::parts_of_halves(slices, help.first_half, help.halves))
    keys += part.length;
  if (keys == 0) return {};
  const Tokens queries = slices[static_cast<std::size_t>(help.of.slice)].length;
  const std::int64_t sequences = run.options.train.micro_batch;
  return model::help_traffic(run.options.model.shape, model::parse_precision(run.options.train.precision),
                             sequences * queries, sequences * keys, backward);
}

// Over the layers of the op; a backward attends again where the attention was not kept.
schedule::HelpBytes op_traffic(const ResolvedRun& run, const schedule::Help& help) {
  const auto [first, count] = run.layers[static_cast<std::size_t>(help.of.stage)];
  const auto forward = layer_traffic(run, help, false), backward = layer_traffic(run, help, true);
  schedule::HelpBytes bytes;
  const auto add = [&](const model::HelpTraffic& traffic) {
    bytes.request += traffic.request;
    bytes.reply += traffic.reply;
  };
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    const model::KeepSet& keep = run.keep[static_cast<std::size_t>(layer)];
    if (!help.backward() || !keep.has(model::SavedTensor::AttentionOutput)) add(forward);
    if (help.backward()) add(backward);
  }
  return bytes;
}

// Of one layer at a time: where a backward attends again, the one or the other.
model::HelpTraffic most_traffic(const ResolvedRun& run, const schedule::Help& help) {
  model::HelpTraffic most = layer_traffic(run, help, false);
  if (!help.backward()) return most;
  const model::HelpTraffic backward = layer_traffic(run, help, true);
  return {std::max(most.request, backward.request), std::max(most.reply, backward.reply)};
}

// What the owner copies to send it.
Bytes copies(const ResolvedRun& run, const schedule::Help& help) {
  const auto slices = cut(run, run.schedule.slices[static_cast<std::size_t>(help.of.micro_batch)]);
  const model::Precision precision = model::parse_precision(run.options.train.precision);
  Bytes bytes = 0;
  for (const model::SlicePart& part : model::parts_of_halves(slices, help.first_half, help.halves)) {
    bytes += model::help_copies(run.options.model.shape, precision, run.options.train.micro_batch,
                                part.length, slices[static_cast<std::size_t>(part.slice)].length);
  }
  return bytes;
}

std::string layers_of_stages(const ResolvedRun& run) {
  std::string text;
  for (const model::LayerRange& layers : run.layers)
    text += (text.empty() ? "" : ", ") + std::to_string(layers.count);
  return text;
}

std::string equal_layers_nearby(const ResolvedRun& run) {
  const std::int64_t layers = run.options.model.shape.layers, stages = run.schedule.stages;
  const std::int64_t below = layers / stages * stages;
  if (below == layers) return "leave parallel.layers out, or set schedule.exchange = \"off\"";
  return "use model.layers = " + std::to_string(below) + " or " + std::to_string(below + stages) +
         ", or schedule.exchange = \"off\"";
}

}  // namespace

void check_exchange(const ResolvedRun& run) {
  const schedule::ScheduleOptions& chosen = run.options.schedule;
  const std::string asked = "schedule.exchange = " + json_quote(chosen.exchange) + " needs ";
  if (!schedule::find_slot_grid(schedule::compute_only(run.schedule))) {
    throw InputError(
        asked + "a schedule in whose slots all devices run forwards together, then backwards together; " +
        (chosen.file.empty() ? "schedule.name = " + json_quote(chosen.name)
                             : "schedule.file = " + json_quote(chosen.file)) +
        " has no such slots: use \"slimpipe\", or schedule.exchange = \"off\"");
  }
  const auto [fewest, greatest] = std::ranges::minmax(run.schedule.slices);
  if (fewest != greatest) {
    throw InputError(asked + "as many slices in every micro-batch; schedule.file = " +
                     json_quote(chosen.file) + " has from " + std::to_string(fewest) + " to " +
                     std::to_string(greatest) + ": use a file with one n, or schedule.exchange = \"off\"");
  }
  const auto [least, most] = std::ranges::minmax(run.layers, {}, &model::LayerRange::count);
  if (least.count != most.count) {
    throw InputError(asked + "as many layers on every stage; model.layers = " +
                     std::to_string(run.options.model.shape.layers) + " over " +
                     std::to_string(run.schedule.stages) + " stages makes " + layers_of_stages(run) + ": " +
                     equal_layers_nearby(run));
  }
}

schedule::ContextExchange exchange_of(const ResolvedRun& run) {
  const schedule::ScheduleOptions& chosen = run.options.schedule;
  const bool open = chosen.exchange == "auto";  // until it is chosen, for the memory that is
  return {.exchange = open ? schedule::Exchange::Off : schedule::parse_exchange(chosen.exchange),
          .limit = static_cast<int>(chosen.exchange_limit),
          .bytes = [&run](const schedule::Help& help) { return op_traffic(run, help); }};
}

Bytes help_buffers(const ResolvedRun& run, const schedule::Program& program, int device) {
  using Op = std::tuple<bool, int, int, int>;
  std::map<Op, Bytes> own;
  std::map<int, std::map<Op, Bytes>> of_owner;
  std::set<int> helpers;
  for (const schedule::Help& help : program.help) {
    if (help.owner != device && help.helper != device) continue;
    const Op op{help.backward(), help.of.stage, help.of.micro_batch, help.of.slice};
    const model::HelpTraffic traffic = most_traffic(run, help);
    if (help.helper == device) of_owner[help.owner][op] += traffic.request + traffic.reply;
    if (help.owner != device) continue;
    own[op] += traffic.reply + copies(run, help);
    helpers.insert(help.helper);
  }
  const auto most = [](const std::map<Op, Bytes>& bytes) {
    Bytes greatest = 0;
    for (const auto& [op, sum] : bytes) greatest = std::max(greatest, sum);
    return greatest;
  };
  Bytes sum = most(own) + kAnnouncement * std::ssize(helpers);
  for (const auto& [owner, bytes] : of_owner) sum += most(bytes) + 2 * kAnnouncement;  // the next is awaited
  return sum;
}

Bytes help_temporaries(const ResolvedRun& run, const schedule::Program& program, int device) {
  const model::Shape& shape = run.options.model.shape;
  const model::KernelSetting setting =
      nn::kernel_setting(model::parse_precision(run.options.train.precision), run.threads);
  Bytes most = 0;
  for (const schedule::Help& help : program.help) {
    if (help.helper != device) continue;
    const auto slices = cut(run, run.schedule.slices[static_cast<std::size_t>(help.of.micro_batch)]);
    model::AttentionSize size{.sequences = run.options.train.micro_batch,
                              .tokens = slices[static_cast<std::size_t>(help.of.slice)].length,
                              .heads = shape.heads,
                              .kv_heads = shape.kv_heads,
                              .head_dim = shape.head_dim()};
    for (const model::SlicePart& part : model::parts_of_halves(slices, help.first_half, help.halves))
      size.earlier.push_back(part.length);
    for (const bool backward : {false, help.backward()})
      most = std::max(most, model::served_temporaries(setting, size, backward));
  }
  return most;
}

}  // namespace penstock::cli
