// SPDX-License-Identifier: Apache-2.0
// A model on disk, in our format or in Hugging Face's: its shape and its weights.
#pragma once

#include <string>

#include "files/model_config.h"
#include "files/model_weights.h"
#include "model/shape.h"

namespace penstock::cli {

struct ModelSource {
  model::Shape shape;
  files::ConfigExtras extras;
  bool hugging_face = false;  // described by a config.json, not by a run.toml
  std::string description;    // path of that file
  files::ModelWeights weights;
};

// The config.json or run.toml that describes the model of a folder, a checkpoint or a safetensors file's
// folder; empty if there is none.
std::string description_of(const std::string& path);

// Whether such a file is a run file, not a config.json.
bool is_run_file(const std::string& description);

// The shape that such a file gives. Throws InputError naming the file or the option.
model::Shape shape_in(const std::string& description);

// `path`: a run directory, a checkpoint, a folder in Hugging Face's format, or a safetensors file, whose
// folder is searched. `config`: a config.json or run file that gives the shape instead; may be empty. Checks
// the weights, and a checkpoint's checksums. Throws InputError naming the missing or wrong part.
ModelSource open_model(const std::string& path, const std::string& config);

}  // namespace penstock::cli
