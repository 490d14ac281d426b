// SPDX-License-Identifier: Apache-2.0
// Tells where every rank of a run is, when one of them has waited too long or somebody asks.
//
// A thread of each rank looks for a request, the file `where` in the run's directory, and answers with the
// rank's position (position.h), whatever the rank itself is doing. The lowest rank that answers collects what
// has come within a few seconds, names who holds up the others, writes that and a table to `positions.txt`,
// tells it, and removes the request. Hosts without a common directory do so each for its own ranks, and a
// rank that finds no directory tells its own position alone.
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
    std::string directory;  // of the run
    bool gathers = false;   // rank 0's host alone has it, or each host one of its own
    int rank = 0;
    comm::RankNames names;                         // of all ranks
    std::function<void(const std::string&)> tell;  // of several lines; called on the recorder's thread
    Seconds patience = 2;                          // for the other ranks' answers
  };

  // Made, used and destroyed by the rank's thread, whose messages are noted.
  explicit FlightRecorder(Setting setting);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void begin_step(std::int64_t step);
  void enter(const schedule::Op& op, bool sliced);
  void enter(const char* work);  // a literal

  // After a wait of this rank has failed: who holds up the others. Empty where no wait has, or where no
  // answer could be written.
  std::string explain();

  // Asks all ranks of the process's run, as the file does; safe in a signal handler.
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
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t step_ = 0;
  std::optional<schedule::Op> op_;
  bool sliced_ = false;
  const char* work_ = "the start";
  Seconds since_;
  bool ends_ = false;
  bool asked_ = false;          // by explain()
  std::string explanation_;     // of the latest request
  std::int64_t explained_ = 0;  // requests
  std::jthread thread_;         // last: it uses the others
};

}  // namespace penstock::train
