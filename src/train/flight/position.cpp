// SPDX-License-Identifier: Apache-2.0
#include "train/flight/position.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using Json = nlohmann::json;

constexpr Seconds kMoving = 1;  // every step has shorter waits
constexpr int kDeepest = 4;

std::string message_of(const Position::Wait& wait) {
  return wait.channel == comm::kCollectiveChannel ? "a message of a collective"
                                                  : "a message on channel " + std::to_string(wait.channel);
}

std::string at_work(const Position& position) {
  const std::string step = position.step > 0 ? " of step " + std::to_string(position.step) : "";
  return position.work + step;
}

std::string does_not_answer(const comm::RankNames& names, int rank) {
  return print_rank(names, rank) + " does not answer: its process is stopped, or its host is lost";
}

// Messages from `from` to `to` on the channel that were sent and have not arrived.
std::int64_t under_way(const Position& from, const Position& to, int channel) {
  const auto count = [&](const Position& here, int peer, std::int64_t comm::Passed::*messages) {
    const auto found = std::ranges::find_if(here.passed, [&](const comm::Passed& passed) {
      return passed.peer == peer && passed.channel == channel;
    });
    return found == here.passed.end() ? 0 : (*found).*messages;
  };
  return count(from, to.rank, &comm::Passed::sent) - count(to, from.rank, &comm::Passed::received);
}

// The rank that has waited longest; null if no wait is long.
const Position* longest_wait(const Positions& positions) {
  const Position* longest = nullptr;
  for (const auto& position : positions) {
    if (!position || !position->wait || position->wait->waited < kMoving) continue;
    if (!longest || position->wait->waited > longest->wait->waited) longest = &*position;
  }
  return longest;
}

// "rank 0 (...) has waited 12 s for rank 1, rank 1 for rank 2"
std::string chain(const std::vector<const Position*>& waiting, const comm::RankNames& names) {
  std::string text;
  for (const Position* rank : waiting) {
    text += text.empty() ? print_rank(names, rank->rank) + " has waited " + print_seconds(rank->wait->waited)
                         : ", rank " + std::to_string(rank->rank);
    text += " for rank " + std::to_string(rank->wait->peer);
  }
  return text;
}

// Whether the rank has no answer because it cannot be read. A host with one readable answer hides no rank.
bool is_hidden(const Positions& positions, std::size_t rank, const comm::RankNames& names,
               Readable readable) {
  if (positions[rank] || readable == Readable::AllRanks) return false;
  return readable == Readable::OwnRank || std::ranges::none_of(positions, [&](const auto& position) {
           return position && names.at(static_cast<std::size_t>(position->rank)).host == names.at(rank).host;
         });
}

// The lowest rank that must have stopped or be lost.
std::optional<int> gone_rank(const Positions& positions, const comm::RankNames& names, Readable readable) {
  for (std::size_t rank = 0; rank < positions.size(); ++rank) {
    if (!positions[rank] && !is_hidden(positions, rank, names, readable)) return static_cast<int>(rank);
  }
  return {};
}

// The sentence when no rank waits for another.
std::string gone_or_none(const Positions& positions, const comm::RankNames& names, Readable readable) {
  if (const auto gone = gone_rank(positions, names, readable)) return does_not_answer(names, *gone);
  const bool all = !silent_rank(positions);
  return "no rank" + std::string(all ? "" : " whose answer can be read here") + " has waited longer than " +
         print_seconds(kMoving);
}

// The sentence about the last rank of the chain, which does not wait for another as far as is known.
std::string end_of_trail(const Positions& positions, int rank, const comm::RankNames& names,
                         Readable readable) {
  const auto index = static_cast<std::size_t>(rank);
  if (is_hidden(positions, index, names, readable))
    return "the trail leads to " + print_rank(names, rank) +
           ", whose answer is told on its own host and cannot be read here: follow what that rank prints";
  const auto& position = positions[index];
  if (!position) return does_not_answer(names, rank);
  return print_rank(names, rank) + " waits for no other: for " + print_seconds(position->working) +
         " it has been at " + at_work(*position);
}

}  // namespace

std::string json_of(const Position& position) {
  Json json{{"rank", position.rank},         {"step", position.step}, {"work", position.work},
            {"working_s", position.working}, {"wait", Json()},        {"passed", Json::array()}};
  if (position.wait) {
    json["wait"] = {{"sending", position.wait->sending},
                    {"peer", position.wait->peer},
                    {"channel", position.wait->channel},
                    {"waited_s", position.wait->waited}};
  }
  for (const comm::Passed& passed : position.passed)
    json["passed"].push_back({passed.peer, passed.channel, passed.sent, passed.received});
  return json.dump() + "\n";
}

Position parse_position(std::string_view json, std::string_view origin, int rank, int ranks) try {
  const Json file = files::parse_strictly(json, origin, "the position", kDeepest);
  Position position{.rank = file.at("rank"),
                    .step = file.at("step"),
                    .work = file.at("work"),
                    .working = file.at("working_s")};
  if (const Json& wait = file.at("wait"); !wait.is_null()) {
    position.wait = {.sending = wait.at("sending"),
                     .peer = wait.at("peer"),
                     .channel = wait.at("channel"),
                     .waited = wait.at("waited_s")};
  }
  for (const Json& passed : file.at("passed"))
    position.passed.push_back({passed.at(0), passed.at(1), passed.at(2), passed.at(3)});
  const bool counted = std::ranges::all_of(
      position.passed, [](const comm::Passed& passed) { return passed.sent >= 0 && passed.received >= 0; });
  const bool among = !position.wait || (position.wait->peer >= 0 && position.wait->peer < ranks);
  if (position.rank != rank || !among || !counted)
    throw InputError(std::string(origin) + ": is not a position of rank " + std::to_string(rank) + " of " +
                     std::to_string(ranks));
  return position;
} catch (const Json::exception& fault) {
  throw InputError(std::string(origin) + ": is not a position of a rank: " + fault.what());
}

std::optional<int> silent_rank(const Positions& positions) {
  const auto silent = std::ranges::find_if(positions, [](const auto& position) { return !position; });
  if (silent == positions.end()) return {};
  return static_cast<int>(silent - positions.begin());
}

std::string culprit(const Positions& positions, const comm::RankNames& names, Readable readable) {
  const Position* first = longest_wait(positions);
  if (!first) return gone_or_none(positions, names, readable);
  std::vector<const Position*> waiting;
  std::set<int> seen;
  for (const Position* rank = first;;) {
    waiting.push_back(rank);
    seen.insert(rank->rank);
    const int peer = rank->wait->peer;
    PENSTOCK_CHECK(peer >= 0 && peer < std::ssize(positions), "ranks wait for ranks");
    const auto& next = positions[static_cast<std::size_t>(peer)];
    const std::string behind = "; " + chain(waiting, names);
    if (!next || !next->wait) return end_of_trail(positions, peer, names, readable) + behind;
    if (!rank->wait->sending && under_way(*next, *rank, rank->wait->channel) > 0)
      return message_of(*rank->wait) + " from " + print_rank(names, peer) + " to rank " +
             std::to_string(rank->rank) + " was sent and has not arrived" + behind;
    if (seen.contains(peer)) return "each waits for the next" + behind;
    rank = &*next;
  }
}

std::string print_positions(const Positions& positions, const comm::RankNames& names, Readable readable) {
  Rows rows{{"rank", "host", "place", "step", "at", "for", "waits for", "for"}};
  for (std::size_t rank = 0; rank < positions.size(); ++rank) {
    const auto& position = positions[rank];
    const auto& [place, host] = names.at(rank);
    if (is_hidden(positions, rank, names, readable)) continue;
    if (!position) {
      rows.push_back({std::to_string(rank), host, place, "-", "does not answer"});
      continue;
    }
    const auto& wait = position->wait;
    rows.push_back(
        {std::to_string(rank), host, place, std::to_string(position->step), position->work,
         print_seconds(position->working),
         wait ? message_of(*wait) + (wait->sending ? " to rank " : " from rank ") + std::to_string(wait->peer)
              : "-",
         wait ? print_seconds(wait->waited) : ""});
  }
  return columns(rows, "rllrlrlr");
}

}  // namespace penstock::train
