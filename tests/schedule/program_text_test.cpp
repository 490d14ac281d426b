// SPDX-License-Identifier: Apache-2.0
#include "schedule/program_text.h"

#include <gtest/gtest.h>

#include "schedule/passes/lower.h"
#include "schedule/program_examples.h"

namespace penstock::schedule {
namespace {

constexpr const char* kTwoSlices = "penstock program 1\nname x\nstages 2\nslices 1,1\n";

std::string error_of(const std::string& text) {
  try {
    parse_program(text, "my.program");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ProgramText, PrintingAndParsingAreInverse) {
  for (const Schedule& schedule : example_schedules()) {
    const Program program = lower(schedule, {.transfer_bytes = [](int j, int i) { return 100 * j + i; }});
    EXPECT_EQ(parse_program(to_text(program), "text"), program) << to_text(program);
  }
}

TEST(ProgramText, EveryKindOfOpComesBack) {
  Program program{"every kind", 2, {1, 3}, {{}, {}}};
  for (int kind = 0; kind <= static_cast<int>(OpKind::OptimizerStep); ++kind) {
    Op op{.key = {1, 1, 2}, .kind = static_cast<OpKind>(kind), .peer = 0, .bytes = 1 << 20};
    if (op.kind >= OpKind::ReduceGradients) op.key.slice = 0, op.key.micro_batch = 0;
    if (op.kind == OpKind::OptimizerStep) op.key.stage = 0;
    program.devices[1].append(op, std::vector<std::uint32_t>(kind > 1 ? 2 : 0, kind > 1 ? kind - 2 : 0));
  }
  EXPECT_EQ(parse_program(to_text(program), "text"), program) << to_text(program);
}

TEST(ProgramText, CollectivesOverEveryGroupComeBack) {
  Program program{"groups", 2, {1}, {{}, {}}};
  for (const mesh::Group group : mesh::kGroups) {
    for (const OpKind kind : {OpKind::ReduceGradients, OpKind::GatherWeights, OpKind::ReleaseWeights})
      program.devices[0].append({.key = {.stage = 1}, .kind = kind, .group = group, .bytes = 8});
    program.devices[0].append({.kind = OpKind::VocabularyLoss, .group = group});
  }
  EXPECT_EQ(parse_program(to_text(program), "text"), program) << to_text(program);
  const std::string line = "3REDUCE_GRAD over replica bytes 4096 after 0\n";
  const std::string text = "penstock program 1\nname x\nstages 4\nslices 1\ndevice 0\n0 3B0\n1 " + line;
  EXPECT_EQ(to_text(parse_program(text, "text")), text);
}

TEST(ProgramText, LooksLikeThis) {
  const Schedule schedule = generate("gpipe", request(2, 1));
  EXPECT_EQ(to_text(lower(schedule, {.transfer_bytes = [](int, int) { return 512; }})),
            "penstock program 1\nname gpipe\nstages 2\nslices 1\n"
            "device 0\n0 0RECV_B0 from 1 bytes 512\n1 0F0\n2 0SEND_F0 to 1 bytes 512 after 1\n3 0B0 after "
            "0\n4 STEP\n"
            "device 1\n0 1RECV_F0 from 0 bytes 512\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 bytes 512 after "
            "2\n4 STEP\n");
}

TEST(ProgramText, WrongTextIsNamedWithItsLineAndWhatWasExpected) {
  const std::string head = kTwoSlices;
  EXPECT_NE(error_of("").find("line 1: the text ends here"), std::string::npos);
  EXPECT_NE(error_of("GIF89a").find("line 1: expected \"penstock program 1\""), std::string::npos);
  EXPECT_NE(error_of("penstock program 1\n").find("line 2: the text ends here"), std::string::npos);
  EXPECT_NE(error_of(head + "0 0F0\n").find("expected \"device 0\""), std::string::npos);
  EXPECT_NE(error_of(head + "device 1\n").find("line 5: \"1\" is not a valid next device"),
            std::string::npos);
  EXPECT_NE(error_of(head + "device 0\n0 0X0\n").find("line 6: \"0X0\" is not an op; expected"),
            std::string::npos);
  for (const char* line : {"1 0F0",
                           "0",
                           "0 ",
                           "0 0F",
                           "0 F0",
                           "0 2F0",
                           "0 0F2",
                           "0 0F0.0",
                           "0 0F-1",
                           "0 STEP1",
                           "0 0STEP",
                           "0 0F0 to 1",
                           "0 0F0 to",
                           "0 0F0 bytes -1",
                           "0 0F0 after 0",
                           "0 0F0 over tensor",
                           "0 0REDUCE_GRAD over everybody",
                           "0 0REDUCE_GRAD over",
                           "0 0GATHER_WEIGHTS0",
                           "0 0F0 after ",
                           "0 0F0 color 3",
                           "0 0F99999999999999999999",
                           "0  0F0",
                           "0 0F0 "}) {
    EXPECT_NE(error_of(head + "device 0\n" + line + "\n").find("line 6"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace penstock::schedule
