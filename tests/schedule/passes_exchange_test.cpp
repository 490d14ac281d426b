// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

struct ExchangeSize {
  int devices, micro_batches, slices, chunks;
};

Program lowered_exchange(const ExchangeSize& size, ExchangeMode exchange, int limit = 1000,
                         bool vocabulary = false) {
  const auto bytes = [](const Exchange& exchange) { return ExchangeBytes{100 * exchange.halves, 7}; };
  return lower(generate("slimpipe", request(size.devices, size.micro_batches, size.slices, size.chunks)),
               {.vocabulary = {.parallel = vocabulary},
                .exchange = {.mode = exchange, .limit = limit, .bytes = bytes}});
}

void for_every_program(const std::function<void(const Program&)>& body) {
  for (const ExchangeSize& size : {ExchangeSize{2, 2, 4, 1},
                                   {3, 2, 5, 1},
                                   {4, 3, 8, 1},
                                   {4, 1, 8, 1},
                                   {2, 2, 4, 3},
                                   {4, 2, 8, 2},
                                   {8, 2, 8, 1}}) {
    for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      SCOPED_TRACE(testing::Message() << size.devices << " " << size.micro_batches << " " << size.slices
                                      << " " << size.chunks << " " << name_of(exchange));
      body(lowered_exchange(size, exchange));
    }
  }
}

TEST(ExchangePass, MakesLegalProgramsAtEverySize) {
  for_every_program([](const Program& program) {
    EXPECT_FALSE(program.exchanges.empty());
    for (const Finding& finding : check(program)) ADD_FAILURE() << finding.text;
  });
  for (const Finding& finding : check(lowered_exchange({4, 2, 8, 1}, ExchangeMode::Levelled, 1000, true)))
    ADD_FAILURE() << finding.text;
}

TEST(ExchangePass, AddsExchangesAndChangesNothingElse) {
  for_every_program([](const Program& program) {
    Program without = program;
    without.exchanges.clear();
    const ExchangeSize size{program.device_count(), program.micro_batches(), program.slices.front(),
                            program.stages / program.device_count()};
    EXPECT_EQ(without, lowered_exchange(size, ExchangeMode::Off));
  });
}

TEST(ExchangePass, IsReadAsItWasPrinted) {
  for_every_program([](const Program& program) {
    const std::string text = to_text(program);
    EXPECT_NE(text.find("\nexchange "), std::string::npos);
    EXPECT_EQ(parse_program(text, "it"), program);
  });
}

TEST(ExchangePass, RunsToItsEndInWhateverOrderThingsHappen) {
  for_every_program([](const Program& program) {
    if (program.device_count() > 4) return;  // slow: everything is looked at in every step
    for (unsigned seed = 0; seed < 5; ++seed) EXPECT_EQ(RandomExecution(program, seed).run(), "");
  });
  const Program sharded = lowered_exchange({3, 2, 4, 1}, ExchangeMode::Levelled, 1000, true);
  for (unsigned seed = 0; seed < 5; ++seed) EXPECT_EQ(RandomExecution(sharded, seed).run(), "");
}

// Slices of unequal work, of whose oldest keys some are of other documents. Those stay at home, and a device
// may both ask and be asked in one slot.
TEST(ExchangePass, MakesLegalProgramsByWork) {
  const auto work_of = [](const PassKey& pass) {
    const std::uint64_t key = stream_key(packed(pass.key.at_stage(0)), 7);
    SliceWork work{.own = 1 + uniform(key, 0), .halves = {}};
    const int halves = 2 * pass.key.slice, unread = halves / 3;
    for (int half = 0; half < halves; ++half)
      work.halves.push_back(half < unread ? 0 : uniform(key, static_cast<std::uint64_t>(half) + 1));
    return work;
  };
  for (const ExchangeMode mode : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
    Lowering options;
    options.exchange.mode = mode;
    options.exchange.work = work_of;
    const Program program = lower(generate("slimpipe", request(4, 2, 8)), options);
    EXPECT_TRUE(std::ranges::any_of(program.exchanges, [](const Exchange& exchange) {
      return exchange.first_half == 2 * exchange.of.key.slice / 3 && exchange.first_half > 0;
    }));
    for (const Finding& finding : check(program)) ADD_FAILURE() << finding.text;
    EXPECT_EQ(RandomExecution(program, 1).run(), "");
  }
}

// What docs/slimpipe.md warns of.
TEST(ExchangePass, WouldStickIfHelpCameOnlyInsideTheHelpersOwnAttention) {
  const Program program = lowered_exchange({4, 2, 8, 1}, ExchangeMode::Paired);
  int stuck = 0;
  for (unsigned seed = 0; seed < 5; ++seed)
    stuck += RandomExecution(program, seed, RandomExecution::Serving::InOwnAttention).run() == "stuck";
  EXPECT_GT(stuck, 0);
}

TEST(ExchangePass, IsRefusedForSchedulesWithoutSlots) {
  const std::string text = failure<InputError>(
      [] { lower(generate("1f1b", request(4, 8, 1)), {.exchange = {.mode = ExchangeMode::Paired}}); });
  EXPECT_NE(text.find("1f1b has none: use slimpipe"), std::string::npos) << text;
}

TEST(ExchangePass, IsRefusedForMicroBatchesOfDifferentNumbersOfSlices) {
  const Schedule schedule = generate("slimpipe", {2, {8, 2, 8}});
  for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
    EXPECT_EQ(failure<InputError>([&] { lower(schedule, {.exchange = {.mode = exchange}}); }),
              "context exchange needs the same number of slices in every micro-batch; slimpipe has from 2 to "
              "8: use one n for all, or no exchange");
  }
  EXPECT_TRUE(lower(schedule).exchanges.empty());
}

// The first finding after a change to the first exchange that fits it.
std::string finding_after(const std::function<bool(Program&, Exchange&)>& change) {
  Program program = lowered_exchange({4, 3, 8, 1}, ExchangeMode::Levelled);
  for (Exchange& exchange : program.exchanges) {
    if (!change(program, exchange)) continue;
    const auto findings = check(program);
    if (findings.empty()) return "none";
    EXPECT_EQ(findings.front().rule, Rule::Exchange) << findings.front().text;
    return findings.front().text;
  }
  return "no such exchange";
}

void expect_finding(const std::function<bool(Program&, Exchange&)>& change, const std::string& wanted) {
  const std::string text = finding_after(change);
  EXPECT_NE(text.find(wanted), std::string::npos) << text;
}

TEST(ExchangeCheck, FindsPartnersThatDoNotAgree) {
  expect_finding([](Program&, Exchange& exchange) { return (exchange.partner = exchange.owner, true); },
                 "has the same device on both sides");
  expect_finding(
      [](Program&, Exchange& exchange) { return (exchange.owner = (exchange.owner + 1) % 4, true); },
      "does not run");
  expect_finding([](Program&, Exchange& exchange) { return (exchange.during.key.slice ^= 1, true); },
                 "is in another slot");
  expect_finding(
      [](Program&, Exchange& exchange) { return (exchange.during.key.stage = exchange.of.key.stage, true); },
      "which that device does not run");
  expect_finding([](Program&, Exchange& exchange) { return (exchange.partner = 99, true); },
                 "which that device does not run");
}

TEST(ExchangeCheck, FindsHalvesThatCannotMove) {
  expect_finding([](Program&, Exchange& exchange) { return (exchange.halves = 0, true); }, "moves nothing");
  expect_finding(
      [](Program&, Exchange& exchange) { return (exchange.halves = 2 * exchange.of.key.slice + 1, true); },
      "earlier slices have");
  expect_finding([](Program&, Exchange& exchange) { return (exchange.first_half = -1, true); },
                 "expected from 0 on: the oldest first, each once");
  for (const int step : {-1, 1}) {
    expect_finding(
        [&](Program&, Exchange& exchange) {
          if (exchange.first_half == 0) return false;
          return (exchange.first_half += step, true);
        },
        "each once");
  }
}

TEST(ExchangeCheck, FindsHelpInRamps) {
  // Device 0 alone runs a forward in the first slot that has one.
  expect_finding(
      [](Program& program, Exchange& exchange) {
        if (exchange.backward() || exchange.of.key.micro_batch != 2) return false;
        exchange.of = forward(3, 2, 7);
        exchange.owner = 3;
        exchange.during = forward(2, 2, 7);
        exchange.partner = 2;
        exchange.halves = 1;
        program.exchanges = {exchange};
        return true;
      },
      "slot");
}

TEST(ExchangeText, RefusesLinesThatAreNoExchange) {
  const std::string good = to_text(lowered_exchange({2, 2, 4, 1}, ExchangeMode::Paired));
  const auto refused = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    const std::size_t at = text.find(what, text.find("\nexchange "));
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    EXPECT_THROW(parse_program(text, "it"), InputError) << by;
  };
  refused("exchange ", "exchange");
  refused(" on ", " at ");
  refused(" by ", " by 7 ");
  refused("halves 0+", "halves 0-");
  refused("halves 0+", "halves -1+");
  refused("bytes ", "bytes x");
  refused("during ", "during 1SEND_F1.1 #");
  EXPECT_THROW(parse_program(good + "9 STEP\n", "it"), InputError) << "ops after exchange";
}

}  // namespace
}  // namespace penstock::schedule
