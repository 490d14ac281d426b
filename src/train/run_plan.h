// SPDX-License-Identifier: Apache-2.0
// A run with nothing left open: what cli resolved and lowered, and every rank carries out its part of.
#pragma once

#include <string>
#include <vector>

#include "model/memory_policy.h"
#include "model/memory_table.h"
#include "model/shape.h"
#include "model/slices.h"
#include "schedule/program.h"
#include "train/options.h"

namespace penstock::train {

struct RunPlan {
  RunOptions options;                     // every option given
  std::vector<model::LayerRange> layers;  // of each stage
  std::vector<model::KeepSet> keep;       // of each layer: what it keeps for the backward
  std::vector<int> device_of_stage;
  schedule::Program program;                                      // one training step
  schedule::Program evaluation;                                   // forwards of one batch
  std::vector<std::vector<model::TokenRange>> slices;             // of each micro-batch of a training step
  std::vector<std::vector<model::TokenRange>> evaluation_slices;  // of each micro-batch of an evaluation
  model::MemoryTable predicted;                                   // of each device
  std::string exchange_note;                                      // the same of schedule.exchange
  std::string memory_note;                                        // what was chosen for "auto"; may be empty
  bool profile = false;                                           // time every call of a kernel

  const model::Shape& shape() const { return options.model.shape; }
  model::Precision precision() const { return model::parse_precision(options.train.precision); }
  int stages() const { return static_cast<int>(layers.size()); }
};

}  // namespace penstock::train
