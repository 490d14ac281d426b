// SPDX-License-Identifier: Apache-2.0
// Runs whose schedule is read from a file.
#include <gtest/gtest.h>

#include "changed.h"
#include "run/resolve/resolve.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::run {
namespace {

TEST(Resolve, ReadsAScheduleFromAFile) {
  const Scratch scratch;
  const schedule::Schedule wanted = schedule::generate("slimpipe", schedule::request(2, 8, 4));
  scratch.write("my.csv", schedule::to_csv(wanted));
  const auto from_file = [&](Options& o) { o.schedule.file = scratch / "my.csv"; };
  const run::Run run = resolve(changed(from_file));
  EXPECT_EQ(run.schedule.devices, wanted.devices);
  EXPECT_EQ(run.options.schedule.slices, 4);
  EXPECT_EQ(printed(resolve(run.options).options), printed(run.options));
}

TEST(Resolve, RefusesAScheduleFileThatDoesNotFitTheRun) {
  const Scratch scratch;
  scratch.write("my.csv", schedule::to_csv(schedule::generate("slimpipe", schedule::request(2, 8, 4))));
  const auto with = [&](auto change) {
    return refusal([&](Options& o) {
      o.schedule.file = scratch / "my.csv";
      change(o);
    });
  };
  EXPECT_NE(with([](auto& o) { o.parallel.pp = 4; }).find("has 2 devices, but parallel.pp = 4"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.train.batch = 4; }).find("has 8 micro-batches"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.schedule.slices = 8; }).find("schedule.slices = 8"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.schedule.name = "1f1b"; }).find("both given"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.schedule.group = 2; }).find("schedule.group = 2"), std::string::npos);
  EXPECT_NE(with([](auto& o) {
              o.data.seq_len = 3;
            }).find("cuts a micro-batch into 4 slices, but data.seq_len = 3"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.schedule.chunks = 3; }).find("parallel.pp times schedule.chunks = 6"),
            std::string::npos);
  EXPECT_NE(with([&](auto& o) { o.schedule.file = scratch / "none.csv"; }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(with([&](auto& o) { o.model.shape.layers = 1; }),
            "schedule.file = \"" + (scratch / "my.csv") +
                "\" has 2 stages, which need a layer each; model.layers = 1: use 2 layers or more, or a file "
                "with fewer stages");
}

TEST(Resolve, AnswersNoToAnIllegalScheduleFile) {
  const Scratch scratch;
  scratch.write("my.csv", "0B0,0F0\n1F0,1B0\n");
  const auto options = changed([&](auto& o) { o.schedule.file = scratch / "my.csv"; });
  EXPECT_NE(failure<NoAnswer>([&] { resolve(options); }), "");
}

}  // namespace
}  // namespace penstock::run
