// SPDX-License-Identifier: Apache-2.0
#include "cli/train/fixed_numerics.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/option_text.h"
#include "base/refusal.h"
#include "base/text.h"
#include "cli/agree.h"
#include "files/run_files.h"
#include "run/replicas.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/settings.h"

namespace penstock::cli {
namespace {

// 0: unknown.
struct FixedNumerics {
  std::int64_t replicas = 0, tensor = 0;
};

FixedNumerics fixed_numerics(const std::string& output_directory) {
  const train::CheckpointDirectory directory = train::checkpoints_in(output_directory);
  const auto steps = directory.steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    train::Settings settings;
    if (refusal_of([&] { settings = train::read_checkpoint_facts(directory, *step).settings; })) continue;
    return {train::replicas_of(settings), train::tensor_shards_of(settings)};
  }
  if (const std::optional<run::Options> was = options_before(output_directory))
    return {was->numerics.replicas, was->numerics.tensor};
  return {};
}

// Fills in `given` if it is 0. `ranks` may be 0: chosen later, to fit.
void take_number(const char* key, std::int64_t& given, std::int64_t fixed, const char* ranks_key,
                 std::int64_t ranks) {
  if (given == 0) given = fixed;
  if (fixed == 0 || ranks == 0 || run::keeps_tree(given, ranks)) return;
  const std::string bits = " when the run began, since its bits depend on it; ";
  require(given == fixed, setting(key, given) + ", but it was fixed as " + std::to_string(fixed) + bits +
                              "set it back, or leave it out");
  const auto legal = [&](std::int64_t count) { return run::keeps_tree(fixed, count); };
  throw InputError(setting(ranks_key, ranks) + " does not fit the resumed run: " + setting(key, fixed) +
                   " was fixed" + bits + "use " + ranks_key + " = " + nearest_legal(ranks, fixed, legal));
}

}  // namespace

std::optional<run::Options> options_before(const std::string& directory) {
  const std::string path = (fs::path(directory) / files::kRunFile).string();
  run::Options was;
  if (!fs::exists(path) || refusal_of([&] { was = run::read_options(path); })) return {};
  return was;
}

bool is_run_before(run::Options options) {
  constexpr std::array<std::string_view, 4> kOfResult{"model", "moe", "data", "train"};
  std::optional<run::Options> was = options_before(options.output.dir);
  return was &&
         std::ranges::none_of(changed(run::describe(options), run::describe(*was)), [&](const Option& of) {
           return std::ranges::find(kOfResult, of.section) != kOfResult.end();
         });
}

void take_numerics(run::Options& options) {
  const FixedNumerics fixed = fixed_numerics(options.output.dir);
  run::NumericsOptions& numerics = options.numerics;
  take_number("numerics.replicas", numerics.replicas, fixed.replicas, "parallel.dp", options.parallel.dp);
  take_number("numerics.tensor", numerics.tensor, fixed.tensor, "parallel.tp", options.parallel.tp);
}

}  // namespace penstock::cli
