// SPDX-License-Identifier: Apache-2.0
// A model on disk, in our form or in Hugging Face's: its shape and its weights.
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
  files::ModelWeights weights;
};

// `path`: a run directory, a checkpoint, a folder in Hugging Face's form, or a safetensors file, whose folder
// is searched. `config`: a config.json or run file that gives the shape instead; may be empty. Checks the
// weights, a checkpoint's by its checksums too. Throws InputError naming what is missing or wrong.
ModelSource open_model(const std::string& path, const std::string& config);

}  // namespace penstock::cli
