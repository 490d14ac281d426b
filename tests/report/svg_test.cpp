// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <gtest/gtest.h>

#include <regex>

#include "report/count.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/text.h"
#include "sim/costs/unit.h"
#include "sim/simulate.h"

namespace penstock::report {
namespace {

using schedule::generate;
using schedule::request;
using schedule::Schedule;

std::size_t actions_of(const Schedule& schedule) {
  std::size_t actions = 0;
  for (const auto& row : schedule.devices) actions += row.size();
  return actions;
}

TEST(Drawing, HasABoxForEveryActionOfEveryGenerator) {
  for (const schedule::Generator& generator : schedule::generators()) {
    const Schedule schedule = generate(generator.name, request(4, 8));
    const Drawing drawing = draw(schedule);
    EXPECT_EQ(drawing.boxes.size(), actions_of(schedule)) << generator.name;
    EXPECT_EQ(drawing.rows.size(), 4u);
    for (const Box& box : drawing.boxes) EXPECT_LE(box.end, drawing.end);
  }
}

TEST(Drawing, BoxesOfADeviceDoNotOverlap) {
  for (const schedule::Generator& generator : schedule::generators()) {
    std::vector<double> free(4, 0);
    for (const Box& box : draw(generate(generator.name, request(4, 8))).boxes) {
      EXPECT_GE(box.start, free[box.row]) << generator.name << " " << box.hint;
      free[box.row] = box.end;
    }
  }
}

TEST(Drawing, LabelsAreMicroBatchAndSlice) {
  const Drawing sliced = draw(schedule::parse_csv("0F0.0,0F0.1,0B0.1,0B0.0,0REDUCE_GRAD\n", "test"));
  EXPECT_EQ(sliced.boxes[1].label, "0.1");
  EXPECT_EQ(sliced.boxes[1].hint, "0F0.1 on device 0, 1 to 2");
  EXPECT_EQ(sliced.boxes[4].label, "R");
  EXPECT_EQ(draw(schedule::parse_csv("0F0,0B0\n", "test")).boxes[1].label, "0");
}

TEST(Drawing, LaterChunksOfADeviceAreDarker) {
  const Drawing drawing = draw(schedule::parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "test"));
  EXPECT_EQ(drawing.boxes[0].lightness, 1);
  EXPECT_LT(drawing.boxes[1].lightness, 1);
}

TEST(Drawing, OfASimulatedProgramIsTheDrawingOfItsSchedule) {
  for (const char* name : {"gpipe", "1f1b", "slimpipe", "zb-h1", "zb-v", "interleaved"}) {
    const Schedule schedule = generate(name, request(4, 8));
    const schedule::Program program = lower(schedule, {.optimizer_step = false});
    const Drawing simulated = draw(program, simulate(program, sim::UnitCosts()).timeline);
    const Drawing drawn = draw(schedule);
    ASSERT_EQ(simulated.boxes.size(), drawn.boxes.size()) << name;
    for (std::size_t i = 0; i < drawn.boxes.size(); ++i) {
      EXPECT_EQ(simulated.boxes[i].start, drawn.boxes[i].start) << name << " " << drawn.boxes[i].hint;
      EXPECT_EQ(simulated.boxes[i].label, drawn.boxes[i].label);
      EXPECT_EQ(simulated.boxes[i].lightness, drawn.boxes[i].lightness);
    }
  }
}

TEST(Drawing, OfAProgramShowsReductionsAndTheStep) {
  schedule::Lowering options;
  options.gradients.tied_embeddings = true;
  const schedule::Program program = lower(generate("1f1b", request(2, 2)), options);
  const Drawing drawing = draw(program, simulate(program, sim::UnitCosts()).timeline);
  EXPECT_EQ(drawing.boxes.back().label, "step");
  EXPECT_EQ(drawing.boxes[drawing.boxes.size() - 2].label, "R1");
  EXPECT_EQ(drawing.unit, "s");
}

TEST(Svg, IsWellFormedXmlWithABoxForEachAction) {
  const Schedule schedule = generate("slimpipe", request(4, 2, 4));
  const std::string text = svg(draw(schedule));
  EXPECT_EQ(count(text, "<title>"), actions_of(schedule));
  EXPECT_EQ(count(text, "<text"), count(text, "</text>"));
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_EQ(count(text, ">0.3</text>"), 8u);
}

TEST(Svg, EscapesTextFromOutside) {
  Drawing drawing{.title = "<script>&\"\n\xFF\xEF\xBF\xBE\xEF\xBF\xBF.",
                  .rows = {"a<b"},
                  .boxes = {},
                  .end = 1,
                  .unit = "&"};
  const std::string text = svg(drawing);
  EXPECT_NE(text.find("&lt;script&gt;&amp;\" \xEF\xBF\xBD  .</text>"), std::string::npos) << text;
  EXPECT_NE(text.find(">a&lt;b</text>"), std::string::npos);
}

TEST(Svg, LabelsThatDoNotFitAreLeftOut) {
  const Drawing drawing = draw(generate("1f1b", request(2, 16)));
  EXPECT_EQ(count(svg(drawing), "class=\"box\""), drawing.boxes.size());
  EXPECT_EQ(count(svg(drawing, {.most_width = 200}), "class=\"box\""), 0u);
}

TEST(Svg, TheAxisCountsInOnesTwosAndFives) {
  Drawing drawing{.title = "",
                  .rows = {"a"},
                  .boxes = {{.start = 0, .end = 0.001, .label = "0"}},
                  .end = 0.0347,
                  .unit = "s"};
  const std::string text = svg(drawing, {.most_width = 300});
  for (const char* tick : {">0.00<", ">0.01<", ">0.02<", ">0.03<"}) EXPECT_EQ(count(text, tick), 1u) << text;
}

TEST(Svg, AnEmptyDrawingIsAFileToo) { EXPECT_TRUE(svg(Drawing{}).ends_with("</svg>\n")); }

}  // namespace
}  // namespace penstock::report
