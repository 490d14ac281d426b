// SPDX-License-Identifier: Apache-2.0
#include "cli/train/check_weights.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "cli/input/model_source.h"
#include "comm/launcher.h"
#include "comm/texts.h"
#include "files/checksum.h"
#include "files/mapped_file.h"
#include "files/model_weights.h"
#include "files/run_files.h"
#include "model/parameters.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/directory.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSampledTensors = 256, kSampledBytes = 4096;  // upper bounds; bytes are per tensor

// The model of the run, or of the config.json, that the weights are from. A run.toml in a folder that is no
// run's says nothing of other files there; nor does one that is damaged.
std::optional<model::Shape> shape_of_source(const std::string& description) {
  if (description.empty()) return {};
  if (!is_run_file(description)) return shape_in(description);
  if (!files::is_there((fs::path(description).parent_path() / files::kLock).string())) return {};
  model::Shape shape;
  if (refusal_of([&] { shape = shape_in(description); })) return {};
  return shape;
}

// Differences that do not show in tensor shapes would otherwise silently train another model. Weights of a
// run may go on with other rotary positions: training on longer sequences does that.
void require_same_model(const model::Shape& run, const files::ModelWeights& weights) {
  const std::string description = description_of(weights.path());
  const std::optional<model::Shape> source = shape_of_source(description);
  if (!source) return;
  run::Options ours, theirs;
  ours.model.shape = run;
  theirs.model.shape = *source;
  for (model::Shape* shape : {&ours.model.shape, &theirs.model.shape}) {
    shape->head_size = shape->head_dim();
    if (shape->rope_scaling.factor == 1.0) shape->rope_scaling = {};
  }
  const OptionTable given = run::describe(ours), said = run::describe(theirs);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool of_model = given[i].section == "model" || (run.experts > 1 && run::is_of_shape(given[i]));
    const bool may_differ = is_run_file(description) && given[i].key.starts_with("rope_");
    if (!of_model || may_differ || value_text(given[i]) == value_text(said[i])) continue;
    throw InputError(printable(description, 500) + " says " + given[i].name() + " = " + value_text(said[i]) +
                     ", but the run has " + value_text(given[i]) + "; set " +
                     (is_run_file(description) ? "it to that" : "model.config to that file"));
  }
}

}  // namespace

void check_weights(const run::ModelOptions& model) {
  if (model.weights.empty()) return;
  on_behalf_of("model.weights", [&] {
    const files::ModelWeights weights(model.weights);
    weights.check(model.shape);
    require_same_model(model.shape, weights);
  });
}

WeightsShare share_on_host(const std::vector<std::string>& hosts, int rank) {
  const auto mine = hosts.begin() + rank;
  return {.share = static_cast<int>(std::count(hosts.begin(), mine, *mine)),
          .shares = static_cast<int>(std::count(hosts.begin(), hosts.end(), *mine))};
}

void check_sums_of_weights(const run::ModelOptions& model, const WeightsShare& mine) {
  if (model.weights.empty()) return;
  on_behalf_of("model.weights",
               [&] { train::verify_weights(model.weights, mine.share, mine.shares, mine.after_tensor); });
}

Refusal agree_on_weights(comm::Communicator& world, const std::function<void(const WeightsShare&)>& work) {
  WeightsShare mine = share_on_host(comm::all_texts(comm::host_name(), world), world.rank());
  train::AllAtWork signs{comm::World(world)};
  mine.after_tensor = [&] { signs.still_working(); };
  const Refusal refusal = refusal_of([&] { work(mine); });
  signs.end();
  return agree(refusal, world);
}

std::optional<std::uint64_t> sum_of_weights(const run::ModelOptions& model) {
  if (model.weights.empty()) return {};
  return on_behalf_of("model.weights", [&] {
    const files::ModelWeights weights(model.weights);
    const std::vector<model::ParameterShape> tensors = model::parameter_shapes(model.shape);
    std::vector<std::uint64_t> sums;
    for (std::size_t i = 0; i < tensors.size(); i += ceil_div(tensors.size(), kSampledTensors)) {
      const files::StoredTensor* tensor = weights.find(tensors[i].name);
      if (!tensor) continue;
      const std::size_t count = std::min(kSampledBytes, tensor->bytes.size());
      sums.push_back(files::checksum(tensor->bytes.subspan((tensor->bytes.size() - count) / 2, count)));
    }
    return files::checksum(std::as_bytes(std::span(sums)));
  });
}

}  // namespace penstock::cli
