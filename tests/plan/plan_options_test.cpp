// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_options.h"

#include <gtest/gtest.h>

#include <fstream>

namespace penstock::plan {
namespace {

TEST(PlanOptions, AreWhatTheDocumentationShows) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/docs/plan_options.md");
  const std::string documented(std::istreambuf_iterator<char>(file), {});
  const std::string fresh = std::string(PENSTOCK_BINARY_DIR) + "/plan_options.md";
  std::ofstream(fresh) << options_markdown();
  EXPECT_EQ(documented, options_markdown())
      << "docs/plan_options.md is out of date: cp " << fresh << " docs/plan_options.md";
}

}  // namespace
}  // namespace penstock::plan
