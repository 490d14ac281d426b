// SPDX-License-Identifier: Apache-2.0
// A list scheduler with real times: a free device takes the best ready action and fills the time until the
// next input arrives with a W. Times are integer ticks, as fine as 64 bits allow, so that sums are exact and
// equal times compare equal.
#pragma once

#include <optional>

#include "schedule/patterns/list_state.h"

namespace penstock::schedule {

class ListScheduler {
 public:
  // Throws InputError if the sum of the times is not finite.
  explicit ListScheduler(const ListProblem& problem);

  // Returns the rule's schedule; nothing if it is not better than `best` or if the rule gets stuck. Only a
  // guide that does not fit the limit gets stuck.
  std::optional<ListResult> run(const ListRule& rule, const ListResult* best);

  // The same for a given schedule, unchanged, with each action as early as possible.
  std::optional<ListResult> replay(const StepRows& schedule, const ListResult* best);

  // True if no schedule of the problem can be better.
  bool is_best(const ListResult& result) const;

  // Bit mask of the kOverruns indices with which the latest run() would have given the same result.
  unsigned same_overruns() const { return same_overruns_; }

 private:
  // For a device with no F or I to run now.
  struct Outlook {
    Ticks next = kNever;  // when the next F or I that may run is known to be ready
    Ticks wake = kNever;  // when to look again
    bool short_of_room = false;
  };

  void connect(const ListProblem& problem);
  void bound(const ListProblem& problem);
  void reset(const StepRows* guide, const ListResult* best);
  std::optional<ListResult> result();

  void decide(int number, Ticks now, const ListRule& rule);
  bool choose_freely(const Device& device, Ticks now, const ListRule& rule, Step& step) const;
  Outlook look_ahead(const Device& device, Ticks now) const;
  bool follow_guide(Device& device, Ticks now, Step& step, Outlook& outlook) const;
  bool takes_weight(const Device& device, const Outlook& outlook, Ticks now, int overrun);
  bool has_room(const Device& device, int chunk) const;
  bool replay_device(int number);
  void start(int number, Step step, Ticks now);
  void count_idle(Device& device, Ticks now);
  Ticks in_ticks(Seconds seconds) const;

  void look_for_repetition(Ticks now);
  template <class See>
  bool see_state(Ticks now, const See& see) const;
  void remember(Ticks now);
  bool is_remembered(Ticks now) const;
  std::size_t repetitions(std::size_t period) const;
  void postpone(Ticks* ready, std::size_t micro_batches, Ticks shift);
  void repeat(std::size_t period, std::size_t times, Ticks now);

  int micro_batches_;
  int chunks_;  // per device
  Bytes limit_;
  double ticks_per_second_ = 1;
  Ticks rounding_ = 0;  // makespans that differ by no more count as equal
  Ticks least_makespan_ = 0;
  std::vector<Device> devices_, fresh_;
  std::vector<Ticks> ready_;
  std::vector<Step> steps_;
  std::vector<std::uint8_t> owed_;
  Earliest earliest_;
  std::vector<int> woken_;  // used by replay()
  bool replaying_ = false;

  const ListResult* best_ = nullptr;
  static constexpr Ticks kFirstRemembered = 8;  // micro-batches
  Remembered remembered_;
  std::vector<Ticks> arrived_;  // scratch of postpone()
  Ticks next_remembered_ = 0;   // in micro-batches
  bool hopeless_ = false;       // can no longer become better than best_
  Ticks idle_ = 0;
  Ticks bound_ = 0;  // lower bound of the makespan
  std::size_t left_ = 0;
  unsigned same_overruns_ = 0;
};

}  // namespace penstock::schedule
