// SPDX-License-Identifier: Apache-2.0
// Reports where every rank of a run is, when a rank has waited too long or on request.
//
// A thread of each rank polls for a request, the file `where` in the run directory, and answers with the
// rank's position (position.h), whatever the rank itself is doing. The lowest rank that answers collects the
// answers for a few seconds, names who holds up the others, writes this and a table to `positions.txt`,
// reports it, and removes the request. Without a common directory, each host does so for its own ranks. A
// rank that cannot create a request file reports only its own position.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "schedule/program.h"
#include "train/flight/position.h"

namespace penstock::train {

class FlightRecorder {
 public:
  struct Setting {
    std::string directory;  // the run's
    bool gathers = false;   // no common directory: rank 0's host alone has it, or each host has its own
    int rank = 0;
    comm::RankNames names;                         // of all ranks
    std::function<void(const std::string&)> tell;  // gets several lines; called on the recorder's thread
    Seconds patience = 2;                          // wait for the other ranks' answers
  };

  // Create, use and destroy it on the rank's thread, whose messages it notes.
  explicit FlightRecorder(Setting setting);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void begin_step(std::int64_t step);
  void enter(const schedule::Op& op, bool sliced);
  void enter(const char* work);  // a string literal

  // Call after a wait of this rank has failed. Names the rank that holds up the others; empty if no wait has
  // failed or no explanation came in time.
  std::string explain();

  // Requests the positions of all ranks of the process's run, like the file `where`. Safe in a signal
  // handler.
  static void ask();

 private:
  void watch();
  bool request() const;
  void answer_alone();
  void answer(std::int64_t request);
  void collect(std::int64_t request);
  void explain_by(const std::string& text);
  Position position() const;
  std::string answer_of(std::int64_t request, int rank) const;
  Positions answers_to(std::int64_t request) const;
  Positions wait_for_answers(std::int64_t request) const;
  std::string path(const char* name) const { return setting_.directory + "/" + name; }

  const Setting setting_;
  comm::MessageNotes notes_;
  comm::NotesScope noted_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::int64_t step_ = 0;
  std::optional<schedule::Op> op_;
  bool sliced_ = false;
  const char* work_ = "the start";
  Seconds since_;
  bool ends_ = false;
  bool asked_ = false;          // by explain()
  std::string explanation_;     // for the latest request
  std::int64_t explained_ = 0;  // requests explained so far
  Seconds explained_at_ = 0;    // time of the latest
  std::jthread thread_;         // last: uses the members above
};

}  // namespace penstock::train
