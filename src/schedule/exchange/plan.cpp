// SPDX-License-Identifier: Apache-2.0
#include "schedule/exchange/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::schedule {
namespace {

constexpr int kGreatestLimit = 1 << 15;  // more than any micro-batch's slices: higher limits have no effect

// [device] The number of halves of earlier slices that its attention reads in a slot.
std::vector<int> read_halves(const Program& program, const FullSlot& slot) {
  std::vector<int> halves;
  for (std::size_t device = 0; device < slot.ops.size(); ++device)
    halves.push_back(2 * program.devices[device].ops[slot.ops[device]].key.slice);
  return halves;
}

// A move of part of one owner's keys to one partner.
struct Move {
  int owner, partner;
  int halves;
  int first = -1;  // first half; -1: after the owner's earlier moves
};

std::vector<int> by_length(const std::vector<int>& halves) {
  std::vector<int> devices(halves.size());
  std::iota(devices.begin(), devices.end(), 0);
  std::ranges::stable_sort(devices, {}, [&](int device) { return halves[device]; });
  return devices;
}

std::vector<Move> paired(const std::vector<int>& read, int limit) {
  const std::vector<int> devices = by_length(read);
  std::vector<Move> moves;
  for (std::size_t i = 0, j = devices.size() - 1; i < j; ++i, --j) {
    const int slices = (read[devices[j]] - read[devices[i]]) / 2 / 2;
    if (slices > 0 && limit > 0) moves.push_back({devices[j], devices[i], 2 * std::min(slices, limit)});
  }
  return moves;
}

// The lowest possible maximum of halves per device.
int least_level(const std::vector<int>& read, int limit) {
  const int devices = static_cast<int>(read.size()), total = std::accumulate(read.begin(), read.end(), 0);
  return std::max(ceil_div(total, devices), std::ranges::max(read) - 2 * limit);
}

// Moves the excess above the level to devices with room below it. Keeps the number of pairs small, since each
// pair transfers queries and outputs: an exact match first, else the greatest excess to the greatest room.
std::vector<Move> levelled(const std::vector<int>& read, int limit) {
  const int level = least_level(read, limit);
  std::vector<int> room;  // negative: excess
  for (const int halves : read) room.push_back(level - halves);
  std::vector<Move> moves;
  while (true) {
    const auto owner = std::ranges::min_element(room);
    if (*owner >= 0) return moves;
    auto partner = std::ranges::find(room, -*owner);
    if (partner == room.end()) partner = std::ranges::max_element(room);
    const int halves = std::min(-*owner, *partner);
    moves.push_back(
        {static_cast<int>(owner - room.begin()), static_cast<int>(partner - room.begin()), halves});
    *owner += halves;
    *partner -= halves;
  }
}

// Plans for slices of unequal work. Each device moves its halves from the oldest one that it reads on.
class UnequalLoads {
 public:
  UnequalLoads(const Program& program, const FullSlot& slot, const WorkOf& work_of, int limit) {
    double sum = 0;
    for (std::size_t device = 0; device < slot.ops.size(); ++device) {
      const Key& key = program.devices[device].ops[slot.ops[device]].key;
      SliceWork work = work_of({slot.backward, key});
      const auto& halves = work.halves;
      const auto read = std::ranges::find_if(halves, [](double half) { return half > 0; });
      const double all = std::accumulate(halves.begin(), halves.end(), work.own);
      sum += all;
      loads_.push_back({.work = all,
                        .next = static_cast<int>(read - halves.begin()),
                        .may_send = 2 * limit,
                        .halves = std::move(work.halves)});
      order_.push_back(static_cast<int>(device));
    }
    mean_ = sum / static_cast<double>(loads_.size());
    std::ranges::stable_sort(order_, {}, [&](int device) { return loads_[device].work; });
  }

  // Pairs the longest with the shortest, and so on inwards; moves half of their difference.
  std::vector<Move> paired() {
    std::vector<Move> moves;
    for (std::size_t i = 0, j = order_.size() - 1; i < j; ++i, --j)
      move(order_[j], order_[i], (loads_[order_[j]].work - loads_[order_[i]].work) / 2, moves);
    return moves;
  }

  // Moves the greatest excess to the greatest room until no half brings a device nearer to the mean. An owner
  // uses each partner at most once.
  std::vector<Move> levelled() {
    std::vector<Move> moves;
    std::vector<bool> done(loads_.size(), false);
    while (true) {
      int owner = -1;
      for (int device = 0; device < std::ssize(loads_); ++device) {
        if (!done[device] && (owner < 0 || loads_[device].work > loads_[owner].work)) owner = device;
      }
      if (owner < 0 || loads_[owner].work <= mean_) return moves;
      int partner = owner;
      for (int device = 0; device < std::ssize(loads_); ++device) {
        const bool asked = std::ranges::any_of(
            moves, [&](const Move& move) { return move.owner == owner && move.partner == device; });
        if (!asked && loads_[device].work < loads_[partner].work) partner = device;
      }
      const double amount = std::min(loads_[owner].work - mean_, mean_ - loads_[partner].work);
      if (!move(owner, partner, amount, moves)) done[owner] = true;
    }
  }

 private:
  struct UnequalLoad {
    double work = 0;
    int next = 0;      // first half not moved yet
    int may_send = 0;  // remaining limit, in halves
    std::vector<double> halves;
  };

  // Moves the number of halves that comes nearest to the amount; returns false if it is 0.
  bool move(int owner, int partner, double amount, std::vector<Move>& moves) {
    UnequalLoad& from = loads_[owner];
    int halves = 0;
    double moved = 0;
    while (from.next + halves < std::ssize(from.halves) && halves < from.may_send) {
      const double half = from.halves[from.next + halves];
      if (moved + half - amount > amount - moved) break;
      moved += half;
      ++halves;
    }
    if (halves == 0) return false;
    moves.push_back({owner, partner, halves, from.next});
    from.next += halves;
    from.may_send -= halves;
    from.work -= moved;
    loads_[partner].work += moved;
    return true;
  }

  std::vector<UnequalLoad> loads_;
  std::vector<int> order_;  // devices, least work first
  double mean_ = 0;
};

// An owner's partners get its keys in order, oldest first.
void add_moves(const FullSlot& slot, std::vector<Move> moves, std::vector<PlannedExchange>& exchange) {
  std::ranges::stable_sort(moves, {}, &Move::owner);
  std::vector<int> sent(slot.ops.size());
  for (const Move& move : moves) {
    exchange.push_back({.slot = slot.number,
                        .backward = slot.backward,
                        .owner = move.owner,
                        .partner = move.partner,
                        .owner_op = slot.ops[move.owner],
                        .partner_op = slot.ops[move.partner],
                        .first_half = move.first >= 0 ? move.first : sent[move.owner],
                        .halves = move.halves});
    sent[move.owner] += move.halves;
  }
}

}  // namespace

std::string_view name_of(ExchangeMode exchange) {
  constexpr std::string_view names[] = {"off", "paired", "levelled"};
  return names[static_cast<std::size_t>(exchange)];
}

ExchangeMode parse_exchange_mode(std::string_view name) {
  for (const ExchangeMode exchange : {ExchangeMode::Off, ExchangeMode::Paired, ExchangeMode::Levelled}) {
    if (name == name_of(exchange)) return exchange;
  }
  throw InputError("\"" + printable(name) + "\" is not a context exchange; expected off, paired or levelled");
}

ExchangePlan plan_exchange(const Program& compute_only, const SlotGrid& grid, ExchangeMode exchange,
                           int limit, const WorkOf& work) {
  ExchangePlan plan;
  if (exchange == ExchangeMode::Off || limit <= 0) return plan;
  limit = std::min(limit, kGreatestLimit);
  const bool pairs = exchange == ExchangeMode::Paired;
  for (const FullSlot& slot : full_slots(compute_only, grid)) {
    if (work) {
      UnequalLoads loads(compute_only, slot, work, limit);
      add_moves(slot, pairs ? loads.paired() : loads.levelled(), plan.exchanges);
    } else {
      const std::vector<int> read = read_halves(compute_only, slot);
      add_moves(slot, pairs ? paired(read, limit) : levelled(read, limit), plan.exchanges);
    }
  }
  return plan;
}

}  // namespace penstock::schedule
