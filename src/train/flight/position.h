// SPDX-License-Identifier: Apache-2.0
// Where a rank is in its run: the op under way and what it waits for; and who holds up all the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "comm/message_notes.h"
#include "comm/rank_names.h"

namespace penstock::train {

struct Position {
  int rank = 0;
  std::int64_t step = 0;  // under way; 0: before the first
  std::string work;       // under way: "1F3.2" (schedule/program_text.h), or words
  Seconds working = 0;    // for so long
  struct Wait {
    bool sending = false;
    int peer = 0;  // rank of the world
    int channel = 0;
    Seconds waited = 0;
  };
  std::optional<Wait> wait;
  std::vector<comm::Passed> passed;  // messages, by peer and channel
};

// One line. The parser throws InputError, beginning with `origin`, also for the position of another rank and
// for a wait for none of the `ranks`.
std::string json_of(const Position& position);
Position parse_position(std::string_view json, std::string_view origin, int rank, int ranks);

// Of each rank; empty where it did not answer.
using Positions = std::vector<std::optional<Position>>;

// Whose answers can be read by the rank that collects them. Hosts without a common directory see their own
// ranks' alone, so that a rank without an answer may be healthy.
enum class Readable { AllRanks, OwnHost, OwnRank };

// The lowest rank that did not answer.
std::optional<int> silent_rank(const Positions& positions);

// One sentence: follows the rank that waits longest to the one it waits for, and so on to one that does not
// answer, one that waits for nobody, a message that was posted and has not arrived, or round to itself; or to
// one whose answer is not readable.
std::string culprit(const Positions& positions, const comm::RankNames& names,
                    Readable readable = Readable::AllRanks);

// A table, a line for each rank whose answer is readable.
std::string print_positions(const Positions& positions, const comm::RankNames& names,
                            Readable readable = Readable::AllRanks);

}  // namespace penstock::train
