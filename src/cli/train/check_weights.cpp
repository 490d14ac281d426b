// SPDX-License-Identifier: Apache-2.0
#include "cli/train/check_weights.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "comm/launcher.h"
#include "comm/texts.h"
#include "files/checksum.h"
#include "files/mapped_file.h"
#include "files/model_config.h"
#include "files/model_weights.h"
#include "model/parameters.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/directory.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSampledTensors = 256, kSampledBytes = 4096;  // upper bounds; bytes are per tensor

// The config.json next to the weights; empty if there is none.
std::string config_beside(const std::string& weights) {
  std::error_code error;
  const fs::path folder =
      fs::is_directory(weights, error) ? fs::path(weights) : fs::path(weights).parent_path();
  const fs::path config = folder / "config.json";
  return files::is_there(config.string()) ? config.string() : std::string();
}

// Differences that do not show in tensor shapes would otherwise silently train another model.
void require_same_model(const model::Shape& run, const std::string& config) {
  run::Options ours, theirs;
  ours.model.shape = run;
  theirs.model.shape = files::read_model_config(config);
  for (model::Shape* shape : {&ours.model.shape, &theirs.model.shape}) {
    shape->head_size = shape->head_dim();
    if (shape->rope_scaling.factor == 1.0) shape->rope_scaling = {};
  }
  const OptionTable given = run::describe(ours), said = run::describe(theirs);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool of_model = given[i].section == "model" || (run.experts > 1 && run::is_of_shape(given[i]));
    if (!of_model || value_text(given[i]) == value_text(said[i])) continue;
    throw InputError(printable(config, 500) + " says " + given[i].name() + " = " + value_text(said[i]) +
                     ", but the run has " + value_text(given[i]) + "; set model.config to that file");
  }
}

}  // namespace

void check_weights(const run::ModelOptions& model) {
  if (model.weights.empty()) return;
  on_behalf_of("model.weights", [&] {
    files::ModelWeights(model.weights).check(model.shape);
    if (const std::string config = config_beside(model.weights); !config.empty())
      require_same_model(model.shape, config);
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
