// SPDX-License-Identifier: Apache-2.0
#include "cli/input/model_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/interruption.h"
#include "base/text.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "run/options.h"
#include "run/settle.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/layout.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

// DIR/checkpoints/step-N, of a run that DIR/run.toml describes; also where its checkpoint.json is renamed, as
// the message about a damaged one advises.
bool is_checkpoint(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path named = whole.has_filename() ? whole : whole.parent_path();
  return named.filename().string().starts_with("step-") &&
         named.parent_path().filename() == files::kCheckpoints;
}

// A run that has not ended, or was extended, has its weights in checkpoints alone.
void require_weights(const std::string& path) {
  std::error_code error;
  const fs::path folder(path);
  if (!fs::is_directory(folder, error) || !files::is_there((folder / files::kRunFile).string())) return;
  if (!files::weights_in(path).empty()) return;
  const train::CheckpointDirectory checkpoints = train::checkpoints_in(path);
  const std::vector<std::int64_t> steps = checkpoints.steps();
  if (steps.empty()) return;
  const std::string newest = fs::path(checkpoints.of_step(steps.back())).lexically_normal().string();
  throw InputError(printable(path, 500) + ": has no " + files::kWeights + "; its newest weights are in " +
                   printable(newest, 500) + "; convert that");
}

// The longest sequence that the model supports.
std::int64_t positions_of(const model::Shape& shape, Tokens seq_len) {
  const model::RopeScaling& scaling = shape.rope_scaling;
  if (scaling.factor == 1.0) return seq_len;
  return std::max<std::int64_t>(
      seq_len, std::llround(scaling.factor * static_cast<double>(scaling.original_positions)));
}

std::optional<std::int64_t> token_of(std::int64_t id) { return id < 0 ? std::nullopt : std::optional(id); }

void describe_by_run_file(const std::string& path, model::Shape& shape, files::ConfigExtras& extras) {
  run::Options options = run::read_options(path);
  run::ModelOptions& model = options.model;
  if (!model.config.empty()) {
    on_behalf_of(path, [&] {
      model.shape = files::read_model_config(model.config);
      run::take_config_extras(model, files::read_config_extras(model.config),
                              run::tokenizer_of(options.data));
    });
  }
  shape = run::shape_of(model);
  on_behalf_of(path, [&] { model::validate(shape); });
  const bool trains = !options.data.text.empty() || !options.data.megatron.empty();
  extras.positions = model.positions == 0 ? positions_of(shape, options.data.seq_len)
                     : trains             ? std::max(model.positions, options.data.seq_len)
                                          : model.positions;
  extras.begin_token = token_of(model.begin_token);
  extras.end_tokens = model.end_tokens;
  extras.padding_token = token_of(model.padding_token);
  if (run::tokenizer_of(options.data) != run::Tokenizer::Bytes) return;
  if (!extras.begin_token) extras.begin_token = files::kBeginOfText;
  if (extras.end_tokens.empty()) extras.end_tokens = {files::kEndOfText};
  if (!extras.padding_token) extras.padding_token = files::kPadding;
}

std::string require_description(const std::string& path) {
  if (std::string found = description_of(path); !found.empty()) return found;
  throw InputError(printable(path, 500) +
                   ": there is neither a config.json nor a run.toml next to it; give --config");
}

}  // namespace

bool is_run_file(const std::string& description) { return fs::path(description).extension() == ".toml"; }

std::string description_of(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::is_directory(path, error) ? path : files::folder_of(path);
  std::vector<fs::path> candidates{folder / "config.json", folder / files::kRunFile};
  if (is_checkpoint(folder)) candidates.push_back(folder / "../.." / files::kRunFile);
  for (const fs::path& candidate : candidates) {
    if (files::is_there(candidate.string())) return candidate.lexically_normal().string();
  }
  return {};
}

model::Shape shape_in(const std::string& description) {
  if (!is_run_file(description)) return files::read_model_config(description);
  model::Shape shape;
  files::ConfigExtras unused;
  describe_by_run_file(description, shape, unused);
  return shape;
}

ModelSource open_model(const std::string& path, const std::string& config) {
  std::error_code error;
  if (!fs::exists(path, error)) throw InputError(printable(path, 500) + ": there is no such file or folder");
  require_weights(path);
  const std::string description = config.empty() ? require_description(path) : config;
  ModelSource source{.hugging_face = !is_run_file(description),
                     .description = description,
                     .weights = files::ModelWeights(path)};
  if (source.hugging_face) {
    source.shape = files::read_model_config(description);
    source.extras = files::read_config_extras(description);
  } else {
    describe_by_run_file(description, source.shape, source.extras);
  }
  source.weights.check(source.shape);
  if (files::is_there((fs::path(path) / train::kCheckpointFacts).string()))
    train::verify_weights(path, 0, 1, allow_interruption);
  return source;
}

}  // namespace penstock::cli
