// SPDX-License-Identifier: Apache-2.0
// Measures a layer's matrix products: forward, gradient of the input, gradient of the weights.
#pragma once

#include <functional>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Rotates through several weight matrices, as in a model with several layers. Collective.
ProductRates measure_products(Recorder& recorder, const Sizes& sizes, model::Precision precision);

// A fixed product of about a millisecond that other figures are compared with. Empty for a GPU, which other
// programs leave alone.
std::function<void()> yardstick();

}  // namespace penstock::profile
