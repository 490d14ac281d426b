// SPDX-License-Identifier: Apache-2.0
// The collectives of a program during simulation: the k-th collective of the same members
// (schedule/meeting.h) begins when all members have arrived and lasts for the longest of their times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "schedule/meeting.h"

namespace penstock::sim {

struct Meeting {
  Seconds start = 0;                                // latest arrival so far
  Seconds took = 0;                                 // longest of their times
  std::vector<std::pair<int, std::uint32_t>> here;  // device and op of the arrived members
  bool complete = false;

  Seconds end() const { return start + took; }
};

class Meetings {
 public:
  explicit Meetings(const schedule::Program& program) : program_(program) {}

  // The device arrives at a collective at `start`; `took` is its duration there. The reference stays valid.
  Meeting& come(int device, std::uint32_t index, Seconds start, Seconds took) {
    const schedule::Members members = schedule::meeting_of(device, program_.devices[device].ops[index]);
    Series& series = series_[members];
    series.come.resize(program_.devices.size());
    const std::uint32_t nth = series.come[device]++;
    if (nth == series.meetings.size()) series.meetings.emplace_back();
    Meeting& meeting = series.meetings[nth];
    meeting.start = std::max(meeting.start, start);
    meeting.took = std::max(meeting.took, took);
    meeting.here.emplace_back(device, index);
    meeting.complete = meeting.here.size() == members.count(program_);
    return meeting;
  }

 private:
  struct Series {
    std::vector<std::uint32_t> come;  // [device] number of arrivals
    std::deque<Meeting> meetings;
  };

  const schedule::Program& program_;
  std::map<schedule::Members, Series> series_;
};

}  // namespace penstock::sim
