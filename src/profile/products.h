// SPDX-License-Identifier: Apache-2.0
// Matrix products as a layer forms them: forward, for the gradient of the input, for that of the weights.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Weights alternate between several matrices, as those of the layers do. Collective.
ProductRates measure_products(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
