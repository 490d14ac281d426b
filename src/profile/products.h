// SPDX-License-Identifier: Apache-2.0
// A layer's matrix products: forward, gradient of the input, gradient of the weights.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Alternates between several weight matrices, as in a model with several layers. Collective.
ProductRates measure_products(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
