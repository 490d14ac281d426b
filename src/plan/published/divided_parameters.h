// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/memory/terms.h"

namespace penstock::plan {

// Parameters on one device in other trainers: `layers` layers and `embeddings` matrices of V·h, divided by t
// (experts by t·e, replicated c·d/e times). Norms are not divided.
model::LocalParameters divided_parameters(const model::Shape& shape, const mesh::Mesh& mesh, double layers,
                                          double embeddings, bool norms = true);

}  // namespace penstock::plan
