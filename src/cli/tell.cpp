// SPDX-License-Identifier: Apache-2.0
#include "cli/tell.h"

#include <iostream>

#include "base/text.h"

namespace penstock::cli {
namespace {

void tell_lines(const std::string& text) {
  std::cerr << "penstock: " + printable_lines(text) + (text.ends_with('\n') ? "" : "\n") << std::flush;
}

}  // namespace

void tell(const std::string& text) { tell_lines(text.substr(0, text.find('\n'))); }

void tell_remark(const std::string& text) { tell(std::string(kRemark) + text); }

void tell_remarks(const std::string& text) { tell_lines(std::string(kRemark) + text); }

}  // namespace penstock::cli
