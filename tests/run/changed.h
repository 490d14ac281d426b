// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/option_text.h"
#include "failure.h"
#include "run/resolve/resolve.h"

namespace penstock::run {

// A legal run, changed by one line of a test.
inline Options changed(const std::function<void(Options&)>& change) {
  Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  change(options);
  return options;
}

inline std::string refusal(const std::function<void(Options&)>& change) {
  return failure<InputError>([&] { resolve(changed(change)); });
}

// As the program prints them, so that two sets of options can be compared whole.
inline std::string printed(Options options) { return print_toml(describe(options)); }

}  // namespace penstock::run
