// SPDX-License-Identifier: Apache-2.0
// A page of docs/ that the program can print.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace penstock {

// Leaves the fresh page in the build folder.
inline void expect_documented(const std::string& page, const std::string& printed) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/docs/" + page);
  const std::string documented(std::istreambuf_iterator<char>(file), {});
  const std::string fresh = PENSTOCK_BINARY_DIR "/" + page;
  std::ofstream(fresh) << printed;
  EXPECT_EQ(documented, printed) << "docs/" << page << " is out of date: cp " << fresh << " docs/" << page;
}

}  // namespace penstock
