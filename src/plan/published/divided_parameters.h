// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/memory/terms.h"

namespace penstock::plan {

// Of other programs, on one device: for `layers` layers and `embeddings` matrices of V·h, all divided by t
// (experts by t·e, replicated c·d/e times) but the norms.
model::LocalParameters divided_parameters(const model::Shape& shape, const mesh::Mesh& mesh, double layers,
                                          double embeddings, bool norms = true);

}  // namespace penstock::plan
