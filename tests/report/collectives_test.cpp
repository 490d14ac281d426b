// SPDX-License-Identifier: Apache-2.0
// Collectives of replicas in every form of a report: a lane of their own, and names that say what they are
// of.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/drawing.h"
#include "report/json_reader.h"
#include "report/palette.h"
#include "report/svg.h"
#include "report/terminal.h"
#include "report/trace.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/passes/shard.h"
#include "sim/costs/unit.h"
#include "sim/simulate.h"

namespace penstock::report {
namespace {

using schedule::OpKind;

schedule::Program with_replicas(const schedule::Program& program) {
  return add_replica_sync(program, {.sharding = schedule::ReplicaSharding::Weights,
                                    .gradient_bytes = [](int) { return Bytes{4000}; },
                                    .weight_bytes = [](int) { return Bytes{2000}; }});
}

schedule::Program two_chunks() {
  return with_replicas(lower(generate("breadth-first", schedule::request(2, 4, 1, 2))));
}

schedule::Program sharded_vocabulary() {
  schedule::Lowering options;
  options.vocabulary.parallel = true;
  return with_replicas(lower(generate("slimpipe", schedule::request(2, 2, 4)), options));
}

// As simulated, but gathers and reductions last so long.
schedule::Timeline timeline_of(const schedule::Program& program, Seconds length) {
  schedule::Timeline timeline = simulate(program, sim::UnitCosts()).timeline;
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    for (std::size_t op = 0; op < timeline.devices[d].size(); ++op) {
      const OpKind kind = program.devices[d].ops[op].kind;
      schedule::Event& event = timeline.devices[d][op];
      if (kind == OpKind::GatherWeights || kind == OpKind::ReduceGradients) event.end = event.start + length;
    }
  }
  return timeline;
}

std::vector<Box> boxes_of(const Drawing& drawing, OpKind kind) {
  std::vector<Box> found;
  std::ranges::copy_if(drawing.boxes, std::back_inserter(found),
                       [&](const Box& box) { return box.kind == kind; });
  return found;
}

TEST(Collectives, AreDrawnOnARowOfTheirOwnWithTheirStage) {
  const schedule::Program program = two_chunks();
  const Drawing drawing = draw(program, timeline_of(program, 0.5));
  EXPECT_EQ(drawing.rows, (std::vector<std::string>{"device 0", "collective", "device 1", "collective"}));
  for (const OpKind kind : {OpKind::GatherWeights, OpKind::ReduceGradients, OpKind::ReleaseWeights}) {
    EXPECT_GE(boxes_of(drawing, kind).size(), 4u);
    for (const Box& box : boxes_of(drawing, kind)) EXPECT_EQ(box.row % 2, 1) << box.hint;
  }
  EXPECT_EQ(boxes_of(drawing, OpKind::GatherWeights)[1].label, "G2");
  EXPECT_TRUE(
      boxes_of(drawing, OpKind::GatherWeights)[1].hint.starts_with("2GATHER_WEIGHTS of stage 2 on device 0"));
}

TEST(Collectives, HaveColoursThatTellThemApart) {
  const std::string text = svg(draw(two_chunks(), timeline_of(two_chunks(), 0.5)));
  for (const char* name :
       {"R: gradient reduction", "G: weights gathered", "gathered weights freed", "step: optimizer"})
    EXPECT_NE(text.find(name), std::string::npos) << name;
  const std::vector<Colour> colours{colour_of(OpKind::ReduceGradients), colour_of(OpKind::GatherWeights),
                                    colour_of(OpKind::ReleaseWeights), colour_of(OpKind::OptimizerStep)};
  for (std::size_t i = 0; i < colours.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(colours[i].hex, colours[k].hex);
  }
}

TEST(Collectives, ShowWhereTheyTakeNoTime) {
  const Drawing drawing{
      .title = "",
      .rows = {"a"},
      .boxes = {{.start = 1, .end = 1, .kind = OpKind::GatherWeights, .label = "", .hint = "h"}},
      .end = 2};
  EXPECT_EQ(svg(drawing).find("width=\"0\""), std::string::npos);
}

TEST(Collectives, NameTheShardedVocabulary) {
  const schedule::Program program = sharded_vocabulary();
  const schedule::Timeline timeline = timeline_of(program, 0.5);
  int named = 0;
  for (const Box& box : boxes_of(draw(program, timeline), OpKind::ReduceGradients))
    named += box.hint.starts_with("2REDUCE_GRAD of the sharded vocabulary on device ") ? 1 : 0;
  EXPECT_EQ(named, program.device_count());
}

TEST(Collectives, SayInTheTraceWhatTheyAreOf) {
  const schedule::Program program = sharded_vocabulary();
  const Json trace = JsonReader::read(chrome_trace(TraceProcess{"", program, timeline_of(program, 0.5)}));
  int of_stages = 0, of_vocabulary = 0;
  for (const Json& event : trace["traceEvents"].list) {
    if (event["ph"].text != "X" || event["cat"].text != "collective") continue;
    const bool vocabulary = event["args"]["stage"].number == program.stages;
    const std::string stage = "stage " + std::to_string(static_cast<int>(event["args"]["stage"].number));
    EXPECT_EQ(event["args"]["of"].text, vocabulary ? "the sharded vocabulary" : stage);
    (vocabulary ? of_vocabulary : of_stages) += 1;
  }
  EXPECT_GE(of_stages, 2 * program.device_count());
  EXPECT_EQ(of_vocabulary, 2 * program.device_count());  // one gather, one reduction
}

TEST(Collectives, HaveALineBelowEachDeviceInATerminal) {
  const schedule::Program program = two_chunks();
  std::istringstream text(terminal_timeline(program, timeline_of(program, 0.5), {.width = 80}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  for (const std::size_t i : {1u, 3u}) {
    EXPECT_TRUE(lines[i].starts_with("collective |G")) << lines[i];
    EXPECT_NE(lines[i].find('R'), std::string::npos) << lines[i];
    EXPECT_EQ(lines[i].find_first_of("FB"), std::string::npos) << lines[i];
    EXPECT_EQ(lines[i].size(), 80u);
  }
  EXPECT_NE(lines.back().find("R gradients reduced, G weights gathered"), std::string::npos) << lines.back();
}

// The share of a lane on which two overlap is that of their union.
TEST(Collectives, CountOverlappingTimeOnce) {
  const schedule::Program program = two_chunks();
  const schedule::Timeline timeline = timeline_of(program, 1000);
  const std::string text = terminal_timeline(program, timeline, {.width = 80});
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1))
    EXPECT_LE(std::stoi(text.substr(at - 4, 3)), 100) << text;
}

}  // namespace
}  // namespace penstock::report
