// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_documents.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"

namespace penstock::train {
namespace {

// Of two micro-batches of one sequence each.
run::Run small_run(Tokens slice_tokens) {
  run::Run run;
  run.options.data.seq_len = 16;
  run.options.schedule.slice_tokens = slice_tokens;
  run.schedule.slices = {4, 4};
  return run;
}

std::string text_of(const std::string& fewest, const std::string& most, const std::string& documents) {
  return R"({"step": 3, "fewest": )" + fewest + R"(, "most": )" + most + R"(, "micro_batches": )" +
         documents + "}";
}

void expect_refused(const std::string& text, const run::Run& run) {
  EXPECT_EQ(failure<InputError>([&] { parse_step_documents(text, run, "documents.json"); }),
            "documents.json: has sequences of other lengths than the run with data.seq_len = 16");
}

TEST(StepDocuments, OfFullSequencesHaveTheirLength) {
  const run::Run run = small_run(0);
  const StepDocuments read =
      parse_step_documents(text_of("[16, 16]", "[16, 16]", "[[[10, 6]], [[16]]]"), run, "documents.json");
  EXPECT_EQ(read.content.documents, (std::vector<model::Documents>{{{10, 6}}, {{16}}}));
  expect_refused(text_of("[16, 16]", "[16, 16]", "[[[10, 6]], [[1]]]"), run);
  expect_refused(text_of("[16, 1]", "[16, 1]", "[[[10, 6]], [[1]]]"), run);
  expect_refused(text_of("[32, 32]", "[32, 32]", "[[[32]], [[32]]]"), run);
}

TEST(StepDocuments, OfSlicesOfAGivenLengthAreWithinTheirBounds) {
  const run::Run run = small_run(4);
  parse_step_documents(text_of("[3, 16]", "[9, 16]", "[[[3]], [[16]]]"), run, "documents.json");
  expect_refused(text_of("[4, 16]", "[9, 16]", "[[[3]], [[16]]]"), run);
  expect_refused(text_of("[3, 16]", "[9, 16]", "[[[10]], [[16]]]"), run);
  expect_refused(text_of("[3, 16]", "[9, 17]", "[[[9]], [[16]]]"), run);
}

}  // namespace
}  // namespace penstock::train
