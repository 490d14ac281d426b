// SPDX-License-Identifier: Apache-2.0
#include "run/arrange.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/refusal.h"
#include "base/text.h"
#include "base/whole.h"
#include "files/mapped_file.h"
#include "run/run.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"
#include "schedule/text.h"

namespace penstock::run {
namespace {

constexpr std::size_t kLongestSchedule = 256 << 20;

std::int64_t micro_batches(const Options& options) {
  return options.train.batch / (options.train.micro_batch * options.parallel.dp);
}

// Vocabulary parallelism needs a named schedule that supports it, or a file whose slots fit its visits.
void require_vocabulary(const Options& options, const schedule::Schedule& schedule) {
  const ScheduleOptions& chosen = options.schedule;
  if (!chosen.vocabulary_parallel) return;
  const std::string wanted = "schedule.vocabulary_parallel = true ";
  if (chosen.file.empty()) {
    require(schedule::find_generator(chosen.name).takes_vocabulary,
            wanted + "is offered for \"slimpipe\", not for schedule.name = " + json_quote(chosen.name) +
                ": use \"slimpipe\", or a schedule.file in whose slots all devices run forwards together, "
                "then backwards together");
    return;
  }
  const std::string file = "schedule.file = " + json_quote(chosen.file);
  require(schedule::find_slot_grid(schedule::compute_only(schedule)).has_value(),
          wanted +
              "needs a schedule in whose slots all devices run forwards together, then backwards together; " +
              file + " has no such slots: use slimpipe's");
}

void require_match(const std::string& file, const char* what, std::int64_t found, const std::string& key,
                   std::int64_t wanted) {
  require(found == wanted, "schedule.file = " + json_quote(file) + " has " + std::to_string(found) + " " +
                               what + ", but " + key + " = " + std::to_string(wanted));
}

// Every slice of a file has a unit of the sequence, or more.
void require_units(const Options& options, int slices) {
  const ScheduleOptions& chosen = options.schedule;
  const std::int64_t units = ceil_div(options.data.seq_len, chosen.slice_unit);
  require(slices <= units, "schedule.file = " + json_quote(chosen.file) + " cuts a micro-batch into " +
                               counted(slices, "slice") +
                               ", but data.seq_len = " + std::to_string(options.data.seq_len) +
                               " with schedule.slice_unit = " + std::to_string(chosen.slice_unit) +
                               " makes at most " + std::to_string(units));
}

schedule::Schedule read(Options& options) {
  ScheduleOptions& chosen = options.schedule;
  require(chosen.name.empty(), "schedule.name = " + json_quote(chosen.name) + " and schedule.file = " +
                                   json_quote(chosen.file) + " are both given; keep one");
  require(chosen.group == 0, "schedule.group = " + std::to_string(chosen.group) +
                                 " applies to schedule.name = \"slimpipe\"; schedule.file = " +
                                 json_quote(chosen.file) + " has its own order: leave the group out");
  schedule::Schedule parsed = on_behalf_of("schedule.file", [&] {
    return schedule::parse_csv(files::read_text(chosen.file, kLongestSchedule), chosen.file);
  });
  const auto findings = schedule::check(parsed, 1);
  if (!findings.empty()) {
    throw NoAnswer(chosen.file + ": not a legal schedule: " + findings.front().text + "; see penstock check");
  }
  require_match(chosen.file, "devices", parsed.device_count(), "parallel.pp", options.parallel.pp);
  require_match(chosen.file, "micro-batches", parsed.micro_batches(),
                options.parallel.dp > 1 ? "train.batch / (train.micro_batch · parallel.dp)"
                                        : "train.batch / train.micro_batch",
                micro_batches(options));
  if (chosen.chunks > 0)
    require_match(chosen.file, "stages", parsed.stages, "parallel.pp times schedule.chunks",
                  options.parallel.pp * chosen.chunks);
  const auto [least, greatest] = std::ranges::minmax(parsed.slices);
  if (chosen.slices > 0) {
    require_match(chosen.file, "slices in some micro-batch", least == chosen.slices ? greatest : least,
                  "schedule.slices", chosen.slices);
  } else if (least == greatest) {
    chosen.slices = least;
  }
  require_units(options, greatest);
  return parsed;
}

// Fewer chunks or devices that leave every stage a layer, as the beginning of a list; empty: there are none.
std::string fewer_stages(const Options& options, std::int64_t chunks) {
  const std::int64_t layers = options.model.shape.layers, devices = options.parallel.pp;
  const auto at_most = [](const char* key, std::int64_t most) {
    return setting(key, most) + (most > 1 ? " or fewer, or " : ", or ");
  };
  const bool any_chunks = schedule::find_generator(options.schedule.name).any_chunks;
  if (any_chunks && layers >= devices) return at_most("schedule.chunks", layers / devices);
  return layers >= chunks ? at_most("parallel.pp", layers / chunks) : "";
}

void check_stages(const Options& options, const schedule::Schedule& schedule) {
  const std::int64_t layers = options.model.shape.layers, devices = options.parallel.pp;
  if (schedule.stages <= layers) return;
  const std::string stages = std::to_string(schedule.stages),
                    need = stages + " stages, which need a layer each; " + setting("model.layers", layers) +
                           ": use ";
  const std::string& file = options.schedule.file;
  require(file.empty(), "schedule.file = " + json_quote(file) + " has " + need + stages +
                            " layers or more, or a file with fewer stages");
  const std::int64_t chunks = schedule.stages / devices;
  throw InputError(setting("parallel.pp", devices) +
                   (chunks > 1 ? " with " + setting("schedule.chunks", chunks) : "") + " makes " + need +
                   fewer_stages(options, chunks) + stages + " layers or more");
}

schedule::StageCosts costs_of(const ScheduleOptions& chosen) {
  return {.forward = chosen.forward,
          .input = chosen.input,
          .weight = chosen.weight,
          .transfer = chosen.transfer,
          .limit = static_cast<Bytes>(chosen.in_flight * static_cast<double>(chosen.chunks))};
}

bool has_letter(std::string_view text, char letter) {
  const auto is_part = [&](std::size_t at) { return at < text.size() && std::isalnum(text[at] & 0xFF) != 0; };
  for (std::size_t at = text.find(letter); at != std::string_view::npos; at = text.find(letter, at + 1)) {
    if (!is_part(at - 1) && !is_part(at + 1)) return true;
  }
  return false;
}

// A generator's message speaks of p, v and n: appends the keys that set those that it has.
std::string with_keys(const std::string& message) {
  constexpr std::pair<char, std::string_view> kKeys[] = {
      {'p', "parallel.pp"}, {'v', "schedule.chunks"}, {'n', "schedule.slices"}};
  std::vector<std::string> named;
  for (const auto& [letter, key] : kKeys) {
    if (has_letter(message, letter)) named.push_back(std::string(1, letter) + " is " + std::string(key));
  }
  return "schedule.name: " + message + (named.empty() ? "" : " (" + join(named, ", ") + ")");
}

}  // namespace

schedule::Request request_of(const Options& options, std::int64_t micro_batches) {
  schedule::Request request;
  request.devices = static_cast<int>(options.parallel.pp);
  request.slices.assign(micro_batches, static_cast<int>(options.schedule.slices));
  request.chunks = static_cast<int>(options.schedule.chunks);
  request.group = static_cast<int>(options.schedule.group);
  request.costs = costs_of(options.schedule);
  return request;
}

schedule::Schedule generate(const Options& options, std::int64_t micro_batches) try {
  return schedule::generate(options.schedule.name, request_of(options, micro_batches));
} catch (const InputError& error) {
  throw InputError(with_keys(error.what()));
}

schedule::Schedule arrange(Options& options) {
  schedule::Schedule schedule;
  if (options.schedule.file.empty()) {
    cut(options, static_cast<int>(options.schedule.slices));  // rejects too many slices before generation
    schedule = generate(options, micro_batches(options));
  } else {
    schedule = read(options);
    cuts_of(options, schedule.slices);
  }
  require_vocabulary(options, schedule);
  check_stages(options, schedule);
  return schedule;
}

}  // namespace penstock::run
