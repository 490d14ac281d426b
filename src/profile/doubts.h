// SPDX-License-Identifier: Apache-2.0
// Comments of a written hardware file that say that its figures are not to be trusted.
#pragma once

#include <string>
#include <string_view>

namespace penstock::profile {

inline constexpr std::string_view kMeasuredOnce = "# measured once, not warmed up";
inline constexpr std::string_view kNoisy = "# NOISY";

// Why the figures of such a text are not to be trusted, as the end of a sentence about their measurement: ",
// once, without warm-up". Empty if they are. Here, as programs ask that do not measure.
inline std::string_view doubts_about(std::string_view hardware_text) {
  const auto has = [&](std::string_view words) {
    return hardware_text.find("\n" + std::string(words)) != std::string_view::npos;
  };
  if (has(kMeasuredOnce)) return ", once, without warm-up";
  if (has(kNoisy)) return " while it was busy with other work; penstock profile measures it again";
  return {};
}

}  // namespace penstock::profile
