// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/exchange.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "failure.h"
#include "schedule/check.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

struct Size {
  int devices, micro_batches, slices, chunks;
};

Program lowered(const Size& size, Exchange exchange, int limit = 1000, bool vocabulary = false) {
  const auto bytes = [](const Help& help) { return HelpBytes{100 * help.halves, 7}; };
  return lower(generate("slimpipe", request(size.devices, size.micro_batches, size.slices, size.chunks)),
               {.vocabulary = {.parallel = vocabulary},
                .exchange = {.exchange = exchange, .limit = limit, .bytes = bytes}});
}

void for_every_program(const std::function<void(const Program&)>& body) {
  for (const Size& size : {Size{2, 2, 4, 1},
                           {3, 2, 5, 1},
                           {4, 3, 8, 1},
                           {4, 1, 8, 1},
                           {2, 2, 4, 3},
                           {4, 2, 8, 2},
                           {8, 2, 8, 1}}) {
    for (const Exchange exchange : {Exchange::Paired, Exchange::Levelled}) {
      SCOPED_TRACE(testing::Message() << size.devices << " " << size.micro_batches << " " << size.slices
                                      << " " << size.chunks << " " << name_of(exchange));
      body(lowered(size, exchange));
    }
  }
}

TEST(ExchangePass, MakesLegalProgramsAtEverySize) {
  for_every_program([](const Program& program) {
    EXPECT_FALSE(program.help.empty());
    for (const Finding& finding : check(program)) ADD_FAILURE() << finding.text;
  });
  for (const Finding& finding : check(lowered({4, 2, 8, 1}, Exchange::Levelled, 1000, true)))
    ADD_FAILURE() << finding.text;
}

TEST(ExchangePass, AddsHelpAndChangesNothingElse) {
  for_every_program([](const Program& program) {
    Program without = program;
    without.help.clear();
    const Size size{program.device_count(), program.micro_batches(), program.slices.front(),
                    program.stages / program.device_count()};
    EXPECT_EQ(without, lowered(size, Exchange::Off));
  });
}

TEST(ExchangePass, IsReadAsItWasPrinted) {
  for_every_program([](const Program& program) {
    const std::string text = to_text(program);
    EXPECT_NE(text.find("\nhelp "), std::string::npos);
    EXPECT_EQ(parse_program(text, "it"), program);
  });
}

TEST(ExchangePass, RunsToItsEndInWhateverOrderThingsHappen) {
  for_every_program([](const Program& program) {
    if (program.device_count() > 4) return;  // slow: everything is looked at in every step
    for (unsigned seed = 0; seed < 5; ++seed) EXPECT_EQ(RandomExecution(program, seed).run(), "");
  });
  const Program sharded = lowered({3, 2, 4, 1}, Exchange::Levelled, 1000, true);
  for (unsigned seed = 0; seed < 5; ++seed) EXPECT_EQ(RandomExecution(sharded, seed).run(), "");
}

// What algorithms.md warns of.
TEST(ExchangePass, WouldStickIfHelpCameOnlyInsideTheHelpersOwnAttention) {
  const Program program = lowered({4, 2, 8, 1}, Exchange::Paired);
  int stuck = 0;
  for (unsigned seed = 0; seed < 5; ++seed)
    stuck += RandomExecution(program, seed, RandomExecution::Serving::InOwnAttention).run() == "stuck";
  EXPECT_GT(stuck, 0);
}

TEST(ExchangePass, IsRefusedForSchedulesWithoutSlots) {
  const std::string text = failure<InputError>(
      [] { lower(generate("1f1b", request(4, 8, 1)), {.exchange = {.exchange = Exchange::Paired}}); });
  EXPECT_NE(text.find("1f1b has none: use slimpipe"), std::string::npos) << text;
}

TEST(ExchangePass, IsRefusedForMicroBatchesOfDifferentNumbersOfSlices) {
  const Schedule schedule = generate("slimpipe", {2, {8, 2, 8}});
  for (const Exchange exchange : {Exchange::Paired, Exchange::Levelled}) {
    EXPECT_EQ(failure<InputError>([&] { lower(schedule, {.exchange = {.exchange = exchange}}); }),
              "context exchange needs as many slices in every micro-batch; slimpipe has from 2 to 8: use one "
              "n for all, or no exchange");
  }
  EXPECT_TRUE(lower(schedule).help.empty());
}

// The first finding after a change to the first help that fits it.
std::string finding_after(const std::function<bool(Program&, Help&)>& change) {
  Program program = lowered({4, 3, 8, 1}, Exchange::Levelled);
  for (Help& help : program.help) {
    if (!change(program, help)) continue;
    const auto findings = check(program);
    if (findings.empty()) return "none";
    EXPECT_EQ(findings.front().rule, Rule::Exchange) << findings.front().text;
    return findings.front().text;
  }
  return "no such help";
}

void expect_finding(const std::function<bool(Program&, Help&)>& change, const std::string& wanted) {
  const std::string text = finding_after(change);
  EXPECT_NE(text.find(wanted), std::string::npos) << text;
}

TEST(ExchangeCheck, FindsPartnersThatDoNotAgree) {
  expect_finding([](Program&, Help& help) { return (help.helper = help.owner, true); }, "would be its own");
  expect_finding([](Program&, Help& help) { return (help.owner = (help.owner + 1) % 4, true); },
                 "does not run");
  expect_finding([](Program&, Help& help) { return (help.during.slice ^= 1, true); }, "is in another slot");
  expect_finding([](Program&, Help& help) { return (help.during.stage = help.of.stage, true); },
                 "which that device does not run");
  expect_finding([](Program&, Help& help) { return (help.helper = 99, true); },
                 "which that device does not run");
}

TEST(ExchangeCheck, FindsHalvesThatCannotMove) {
  expect_finding([](Program&, Help& help) { return (help.halves = 0, true); }, "moves nothing");
  expect_finding([](Program&, Help& help) { return (help.halves = 2 * help.of.slice + 1, true); },
                 "earlier slices have");
  expect_finding([](Program&, Help& help) { return (help.first_half = 1, true); },
                 "expected from 0 on: the oldest first, each once");
  expect_finding(
      [](Program&, Help& help) {
        if (help.first_half == 0) return false;
        return (--help.first_half, true);
      },
      "each once");
}

TEST(ExchangeCheck, FindsHelpInRampsAndByDevicesThatNeedHelp) {
  // Device 0 alone runs a forward in the first slot that has one.
  expect_finding(
      [](Program& program, Help& help) {
        if (help.backward() || help.of.micro_batch != 2) return false;
        help.of = forward(3, 2, 7);
        help.owner = 3;
        help.during = forward(2, 2, 7);
        help.helper = 2;
        help.halves = 1;
        program.help = {help};
        return true;
      },
      "slot");
  expect_finding(
      [](Program& program, Help& help) {
        const Help turned{
            .of = help.during, .during = help.of, .owner = help.helper, .helper = help.owner, .halves = 1};
        if (turned.of.slice == 0) return false;
        program.help.push_back(turned);
        return true;
      },
      "gives help in the same slot");
}

TEST(ExchangeText, RefusesLinesThatAreNoHelp) {
  const std::string good = to_text(lowered({2, 2, 4, 1}, Exchange::Paired));
  const auto refused = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    const std::size_t at = text.find(what, text.find("\nhelp "));
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    EXPECT_THROW(parse_program(text, "it"), InputError) << by;
  };
  refused("help ", "help");
  refused(" on ", " at ");
  refused(" by ", " by 7 ");
  refused("halves 0+", "halves 0-");
  refused("halves 0+", "halves -1+");
  refused("bytes ", "bytes x");
  refused("during ", "during 1SEND_F1.1 #");
  EXPECT_THROW(parse_program(good + "9 STEP\n", "it"), InputError) << "ops after help";
}

}  // namespace
}  // namespace penstock::schedule
