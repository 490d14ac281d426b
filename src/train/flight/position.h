// SPDX-License-Identifier: Apache-2.0
// A rank's position in its run: the current op and the message that it waits for. Finds the rank that holds
// up the others.
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
  std::int64_t step = 0;  // current; 0: before the first
  std::string work;       // current: "1F3.2" (schedule/program_text.h), or words
  Seconds working = 0;    // time in the current work
  struct Wait {
    bool sending = false;
    int peer = 0;  // rank of the world
    int channel = 0;
    Seconds waited = 0;
  };
  std::optional<Wait> wait;
  std::vector<comm::Passed> passed;  // messages, by peer and channel
};

// JSON on one line. The parser throws InputError, which begins with `origin`, also if the position is another
// rank's or waits for a rank outside [0, ranks).
std::string json_of(const Position& position);
Position parse_position(std::string_view json, std::string_view origin, int rank, int ranks);

// One per rank; empty if the rank did not answer.
using Positions = std::vector<std::optional<Position>>;

// The ranks whose answers the collecting rank can read. Without a common directory a host sees only its own
// ranks' answers, so a rank without an answer may be healthy.
enum class Readable { AllRanks, OwnHost, OwnRank };

// The lowest rank that did not answer.
std::optional<int> silent_rank(const Positions& positions);

// One sentence. Follows the waits from the longest-waiting rank to one that does not answer, one that does
// not wait, a posted message that has not arrived, a cycle, or a rank whose answer is not readable.
std::string culprit(const Positions& positions, const comm::RankNames& names,
                    Readable readable = Readable::AllRanks);

// A table with one line per rank whose answer is readable.
std::string print_positions(const Positions& positions, const comm::RankNames& names,
                            Readable readable = Readable::AllRanks);

}  // namespace penstock::train
