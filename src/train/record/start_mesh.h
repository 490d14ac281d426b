// SPDX-License-Identifier: Apache-2.0
// The mesh of each start of a run, in the first line that the start writes to metrics.jsonl. Checkpoints do
// not have it, since their bytes are the same for every mesh; run.toml has the mesh of the last start, which
// may have completed no step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/options.h"

namespace penstock::train {

inline constexpr const char* kMeshOfStart = "parallel";  // a member of "start"

// The options of [parallel] without the layers of stages: keys, and values in the form of a run file.
using MeshOptions = std::vector<std::pair<std::string, std::string>>;
MeshOptions mesh_options(run::ParallelOptions options);

// Returns the mesh of the last start that completed a step up to `step`, by the text of metrics.jsonl; empty
// if it does not tell, as in files of earlier versions. Throws InputError that begins with `origin` for
// unknown options and invalid values.
std::optional<run::ParallelOptions> mesh_of_step(std::string_view metrics, std::int64_t step,
                                                 std::string_view origin);

}  // namespace penstock::train
