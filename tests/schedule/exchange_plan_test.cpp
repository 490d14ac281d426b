// SPDX-License-Identifier: Apache-2.0
#include "schedule/exchange/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/random.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/compute.h"

namespace penstock::schedule {
namespace {

struct Size {
  int devices, micro_batches, slices, chunks;
};

struct Planned {
  Program program;
  SlotGrid grid;
  ExchangePlan plan;

  Planned(const Size& size, ExchangeMode exchange, int limit = 1000)
      : program(compute_only(
            generate("slimpipe", request(size.devices, size.micro_batches, size.slices, size.chunks)))),
        grid(*find_slot_grid(program)),
        plan(plan_exchange(program, grid, exchange, limit)) {}

  int halves_of(int device, std::uint32_t op) const { return 2 * program.devices[device].ops[op].key.slice; }
};

// What a plan comes to, counting a slice that has j earlier ones as j + 1/2 of work.
struct ExchangeEffect {
  double mean_slices = 0;      // of K,V sent, by device and slot
  double greatest_slices = 0;  // sent by one device in one slot
  double before = 1;           // mean over slots of the slowest device's work, by the mean work
  double after = 1;
};

// Over the slots from `begin` to `end` in which all devices run a forward.
ExchangeEffect effect_of(const Planned& planned, int begin, int end) {
  const int devices = planned.program.device_count();
  std::map<int, std::map<int, double>> before, sent;  // by slot and device
  for (int device = 0; device < devices; ++device) {
    const auto& ops = planned.program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const int slot = planned.grid.slot_of[device][i];
      if (ops[i].kind == OpKind::Forward && slot >= begin && slot < end)
        before[slot][device] = ops[i].key.slice + 0.5;
    }
  }
  std::erase_if(before, [&](const auto& slot) { return std::ssize(slot.second) < devices; });
  if (before.empty()) return {};
  auto after = before;
  for (const PlannedExchange& exchange : planned.plan.exchanges) {
    if (exchange.backward || !before.contains(exchange.slot)) continue;
    after[exchange.slot][exchange.owner] -= exchange.halves / 2.0;
    after[exchange.slot][exchange.partner] += exchange.halves / 2.0;
    sent[exchange.slot][exchange.owner] += exchange.halves / 2.0;
  }
  const auto greatest = [](const std::map<int, double>& by_device) {
    double most = 0;
    for (const auto& [device, value] : by_device) most = std::max(most, value);
    return most;
  };
  ExchangeEffect effect{.before = 0, .after = 0};
  const double cells = static_cast<double>(before.size()) * devices;
  double work = 0;
  for (const auto& [slot, loads] : before) {
    for (const auto& [device, slices] : loads) work += slices / devices;
    for (const auto& [device, slices] : sent[slot]) effect.mean_slices += slices / cells;
    effect.greatest_slices = std::max(effect.greatest_slices, greatest(sent[slot]));
    effect.before += greatest(loads);
    effect.after += greatest(after[slot]);
  }
  effect.before /= work;
  effect.after /= work;
  return effect;
}

ExchangeEffect whole_effect(const Planned& planned) {
  return effect_of(planned, 0, std::numeric_limits<int>::max());
}

// Of as many slots in the steady middle of three micro-batches as one of them has.
ExchangeEffect steady_effect(const Size& size, ExchangeMode exchange) {
  const Planned planned({size.devices, 3, size.slices, size.chunks}, exchange);
  const int period = size.slices * size.chunks, begin = period + size.devices;
  return effect_of(planned, begin, begin + period);
}

// Half of a printed digit; some of the tables' values lie on it, as 1.875.
constexpr double kHalfDigit = 0.005 + 1e-9;

struct Published {
  int devices, slices, chunks;
  double mean, greatest, before, after;
};

// Algorithms, "Attention context exchange", first table.
TEST(ExchangePlan, InPairsReproducesTheFirstTable) {
  for (const Published& row : {Published{4, 8, 1, 0.50, 3, 1.56, 1.19},
                               {4, 16, 10, 0.29, 7, 1.20, 1.07},
                               {8, 8, 10, 0.75, 3, 1.88, 1.13},
                               {8, 16, 10, 0.80, 7, 1.46, 1.07},
                               {16, 32, 5, 1.95, 15, 1.52, 1.05},
                               {16, 64, 5, 2.05, 31, 1.27, 1.03}}) {
    SCOPED_TRACE(testing::Message() << row.devices << " " << row.slices << " " << row.chunks);
    const Size size{row.devices, 3, row.slices, row.chunks};
    const ExchangeEffect steady = steady_effect(size, ExchangeMode::Paired);
    EXPECT_NEAR(steady.mean_slices, row.mean, kHalfDigit);
    EXPECT_EQ(steady.greatest_slices, row.greatest);
    EXPECT_NEAR(steady.before, row.before, kHalfDigit);
    EXPECT_NEAR(steady.after, row.after, kHalfDigit);
  }
}

// The second table: before, paired, levelled by halves, and the two volumes.
TEST(ExchangePlan, LevelledReproducesTheSecondTable) {
  struct Row {
    int devices, slices, chunks;
    double before, paired, levelled, paired_volume, levelled_volume;
  };
  for (const Row& row : {Row{4, 8, 1, 1.562, 1.188, 1.000, 0.50, 0.78},
                         {4, 16, 1, 1.328, 1.109, 1.000, 0.62, 0.95},
                         {8, 16, 10, 1.459, 1.072, 1.000, 0.80, 1.06},
                         {8, 64, 1, 1.205, 1.057, 1.000, 1.62, 2.12},
                         {16, 32, 5, 1.516, 1.053, 1.000, 1.95, 2.23}}) {
    SCOPED_TRACE(testing::Message() << row.devices << " " << row.slices << " " << row.chunks);
    const Size size{row.devices, 3, row.slices, row.chunks};
    const ExchangeEffect paired = steady_effect(size, ExchangeMode::Paired);
    const ExchangeEffect levelled = steady_effect(size, ExchangeMode::Levelled);
    EXPECT_NEAR(paired.before, row.before, kHalfDigit / 10);
    EXPECT_NEAR(paired.after, row.paired, kHalfDigit / 10);
    EXPECT_NEAR(levelled.after, row.levelled, kHalfDigit / 10);
    EXPECT_NEAR(paired.mean_slices, row.paired_volume, kHalfDigit);
    EXPECT_NEAR(levelled.mean_slices, row.levelled_volume, kHalfDigit);
  }
}

// Sizes whose slots cannot become equal (below the second table).
TEST(ExchangePlan, LevelledReachesTheLeastValueOfOtherSizes) {
  constexpr int kMany = 200;  // micro-batches, so that the ramps, which have no exchange, hardly count
  EXPECT_NEAR(whole_effect(Planned({3, kMany, 4, 1}, ExchangeMode::Levelled)).after, 1.0625, 0.001);
  EXPECT_NEAR(whole_effect(Planned({4, kMany, 5, 1}, ExchangeMode::Levelled)).after, 1.04, 0.001);
}

void for_every_size(const std::function<void(const Size&)>& body) {
  for (const Size& size : {Size{1, 2, 4, 1},
                           {2, 1, 2, 1},
                           {2, 3, 5, 1},
                           {3, 2, 4, 1},
                           {3, 2, 7, 2},
                           {4, 3, 8, 1},
                           {4, 2, 8, 3},
                           {5, 2, 3, 1},
                           {8, 2, 16, 1}}) {
    SCOPED_TRACE(testing::Message() << size.devices << " " << size.micro_batches << " " << size.slices << " "
                                    << size.chunks);
    body(size);
  }
}

// Halves that each device attends to in one slot, by (slot, backward), of slots with exchange.
using Loads = std::map<std::pair<int, bool>, std::map<int, int>>;
Loads loads_of(const Planned& planned) {
  Loads loads;
  for (const PlannedExchange& exchange : planned.plan.exchanges) {
    auto& slot = loads[{exchange.slot, exchange.backward}];
    for (std::size_t d = 0; d < planned.program.devices.size(); ++d) {
      const auto& ops = planned.program.devices[d].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const bool same =
            planned.grid.slot_of[d][i] == exchange.slot && is_backward(ops[i].kind) == exchange.backward;
        if (same && ops[i].kind != OpKind::BackwardWeight) slot[static_cast<int>(d)] = 2 * ops[i].key.slice;
      }
    }
  }
  return loads;
}

TEST(ExchangePlan, MovesWhatAnOwnerHasFromItsOldestOnToDevicesOfTheSameSlot) {
  for_every_size([](const Size& size) {
    for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      const Planned planned(size, exchange);
      std::map<std::tuple<int, bool, int>, int> sent;
      for (const PlannedExchange& exchange : planned.plan.exchanges) {
        EXPECT_NE(exchange.owner, exchange.partner);
        EXPECT_GT(exchange.halves, 0);
        int& first = sent[{exchange.slot, exchange.backward, exchange.owner}];
        EXPECT_EQ(exchange.first_half, first) << "parts follow each other";
        first += exchange.halves;
        EXPECT_LE(first, planned.halves_of(exchange.owner, exchange.owner_op));
        for (const auto& [device, op] :
             {std::pair{exchange.owner, exchange.owner_op}, {exchange.partner, exchange.partner_op}}) {
          EXPECT_EQ(planned.grid.slot_of[device][op], exchange.slot);
          EXPECT_EQ(is_backward(planned.program.devices[device].ops[op].kind), exchange.backward);
        }
      }
      for (const PlannedExchange& exchange : planned.plan.exchanges) {
        EXPECT_FALSE(sent.contains({exchange.slot, exchange.backward, exchange.partner}))
            << "nobody gives and takes";
      }
    }
  });
}

// Every way to hand halves of the devices above to those below, tried one by one.
int least_greatest(std::vector<int> halves, std::size_t from = 0) {
  const int greatest = *std::ranges::max_element(halves);
  if (from == halves.size()) return greatest;
  int least = least_greatest(halves, from + 1);
  for (std::size_t to = 0; to < halves.size(); ++to) {
    if (halves[to] + 1 >= halves[from]) continue;
    std::vector<int> moved = halves;
    --moved[from];
    ++moved[to];
    least = std::min(least, least_greatest(moved, from));
  }
  return least;
}

TEST(ExchangePlan, LevelledLeavesTheLeastThatIsPossibleByBruteForce) {
  for (const Size& size : {Size{2, 2, 4, 1}, {3, 2, 4, 1}, {3, 2, 3, 1}, {4, 2, 3, 1}}) {
    const Planned planned(size, ExchangeMode::Levelled);
    for (const auto& [slot, before] : loads_of(planned)) {
      std::vector<int> halves;
      std::map<int, int> after = before;
      for (const auto& [device, load] : before) halves.push_back(load);
      for (const PlannedExchange& exchange : planned.plan.exchanges) {
        if (std::pair(exchange.slot, exchange.backward) != slot) continue;
        after[exchange.owner] -= exchange.halves;
        after[exchange.partner] += exchange.halves;
      }
      int greatest = 0;
      for (const auto& [device, load] : after) greatest = std::max(greatest, load);
      EXPECT_EQ(greatest, least_greatest(halves)) << slot.first;
    }
  }
}

TEST(ExchangePlan, KeepsToTheLimitOfEveryOwnerAndIsEmptyWithoutOne) {
  for_every_size([](const Size& size) {
    for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      EXPECT_TRUE(Planned(size, exchange, 0).plan.exchanges.empty());
      for (const int limit : {1, 2})
        EXPECT_LE(whole_effect(Planned(size, exchange, limit)).greatest_slices, limit);
      const ExchangeEffect free = whole_effect(Planned(size, exchange)),
                           bound = whole_effect(Planned(size, exchange, 1));
      EXPECT_LE(free.after, bound.after + 1e-12);
      EXPECT_LE(bound.after, bound.before);
    }
    EXPECT_TRUE(Planned(size, ExchangeMode::Off).plan.exchanges.empty());
  });
}

TEST(ExchangePlan, TakesAnyLimitThatNoDeviceReachesForNone) {
  for_every_size([](const Size& size) {
    for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      const Planned wanted(size, exchange, size.slices);
      for (const int limit : {std::numeric_limits<int>::max(), std::numeric_limits<int>::max() / 2 + 1})
        EXPECT_TRUE(Planned(size, exchange, limit).plan.exchanges == wanted.plan.exchanges) << limit;
    }
  });
}

TEST(ExchangePlan, HasNoHelpInTheRamps) {
  for_every_size([](const Size& size) {
    const Planned planned(size, ExchangeMode::Levelled);
    std::map<std::pair<int, bool>, std::set<int>> there;
    for (int device = 0; device < size.devices; ++device) {
      const auto& ops = planned.program.devices[device].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        there[{planned.grid.slot_of[device][i], is_backward(ops[i].kind)}].insert(device);
      }
    }
    for (const PlannedExchange& exchange : planned.plan.exchanges) {
      EXPECT_EQ(static_cast<int>(there[{exchange.slot, exchange.backward}].size()), size.devices);
    }
  });
}

// Random works, of slices whose oldest keys nobody reads.
SliceWork random_work(const PassKey& pass) {
  const std::uint64_t key = stream_key(packed(pass.key.at_stage(0)), pass.backward ? 2 : 1);
  SliceWork work{.own = 1 + uniform(key, 0), .halves = {}};
  const auto halves = static_cast<std::uint64_t>(2 * pass.key.slice);
  const std::uint64_t unread = halves > 0 ? random_bits(key, 1) % halves : 0;
  for (std::uint64_t half = 0; half < halves; ++half)
    work.halves.push_back(half < unread ? 0 : 0.05 + 0.3 * uniform(key, 2 + half));
  return work;
}

// Greatest work over the mean, by slot and whether it is one of backwards.
std::map<std::pair<int, bool>, double> unevenness(const Planned& planned, const ExchangePlan& plan,
                                                  bool& sound) {
  std::map<std::pair<int, bool>, std::map<int, double>> works;
  for (int device = 0; device < planned.program.device_count(); ++device) {
    const auto& ops = planned.program.devices[device].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const bool backward = ops[i].kind != OpKind::Forward;
      const SliceWork work = random_work({backward, ops[i].key});
      works[{planned.grid.slot_of[device][i], backward}][device] =
          std::accumulate(work.halves.begin(), work.halves.end(), work.own);
    }
  }
  for (const PlannedExchange& exchange : plan.exchanges) {
    const Key& key = planned.program.devices[exchange.owner].ops[exchange.owner_op].key;
    const SliceWork work = random_work({exchange.backward, key});
    auto& slot = works.at({exchange.slot, exchange.backward});
    for (int half = exchange.first_half; half < exchange.first_half + exchange.halves; ++half) {
      sound = sound && half < std::ssize(work.halves) && work.halves[static_cast<std::size_t>(half)] > 0;
      slot[exchange.owner] -= work.halves[static_cast<std::size_t>(half)];
      slot[exchange.partner] += work.halves[static_cast<std::size_t>(half)];
    }
  }
  std::map<std::pair<int, bool>, double> found;
  for (const auto& [slot, devices] : works) {
    if (std::ssize(devices) < planned.program.device_count()) continue;
    double sum = 0, most = 0;
    for (const auto& [device, work] : devices) {
      sum += work;
      most = std::max(most, work);
    }
    found[slot] = most * static_cast<double>(devices.size()) / sum;
  }
  return found;
}

TEST(ExchangeByWork, MovesOnlyWhatIsReadAndEvensSlotsOut) {
  for (const Size& size : {Size{2, 3, 8, 1}, Size{4, 4, 8, 1}, Size{4, 2, 16, 2}, Size{8, 4, 16, 1}}) {
    const Planned planned(size, ExchangeMode::Off);
    bool sound = true;
    const auto mean = [](const std::map<std::pair<int, bool>, double>& slots) {
      double sum = 0;
      for (const auto& [slot, uneven] : slots) sum += uneven;
      return sum / static_cast<double>(slots.size());
    };
    const double off = mean(unevenness(planned, planned.plan, sound));
    double before = off;
    for (const ExchangeMode mode : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      const ExchangePlan plan = plan_exchange(planned.program, planned.grid, mode, 1000, random_work);
      const double after = mean(unevenness(planned, plan, sound));
      EXPECT_LT(after, before);
      before = after;
    }
    EXPECT_LT(before - 1, (off - 1) / 3);
    EXPECT_TRUE(sound);
  }
}

TEST(ExchangeByWork, KeepsTheLimit) {
  const Planned planned({4, 3, 16, 1}, ExchangeMode::Off);
  for (const int limit : {1, 2}) {
    for (const ExchangeMode mode : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      std::map<std::tuple<int, bool, int>, int> sent;
      for (const PlannedExchange& exchange :
           plan_exchange(planned.program, planned.grid, mode, limit, random_work).exchanges)
        sent[{exchange.slot, exchange.backward, exchange.owner}] += exchange.halves;
      EXPECT_FALSE(sent.empty());
      for (const auto& [owner, halves] : sent) EXPECT_LE(halves, 2 * limit);
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
