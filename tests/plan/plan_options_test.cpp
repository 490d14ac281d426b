// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_options.h"

#include <gtest/gtest.h>

#include "documented.h"

namespace penstock::plan {
namespace {

TEST(PlanOptions, AreWhatTheDocumentationShows) { expect_documented("plan_options.md", options_markdown()); }

}  // namespace
}  // namespace penstock::plan
