// SPDX-License-Identifier: Apache-2.0
// A list scheduler in real time: whenever a device is free it takes the best action that is ready, and fills
// the time until the next one arrives with a W. Times are whole ticks, as fine as 64 bits allow, so that sums
// are exact and equal times are equal.
#pragma once

#include <optional>

#include "schedule/patterns/list_state.h"

namespace penstock::schedule {

class ListScheduler {
 public:
  // Throws InputError when the times add up to more than a number can hold.
  explicit ListScheduler(const ListProblem& problem);

  // The rule's schedule. Nothing when it is no better than `best`, or when the rule gets stuck, which only a
  // guide that does not fit the limit does.
  std::optional<ListResult> run(const ListRule& rule, const ListResult* best);

  // The same for a schedule as it is, each action as early as possible.
  std::optional<ListResult> replay(const StepRows& schedule, const ListResult* best);

  // No schedule of the problem is better.
  bool is_best(const ListResult& result) const;

  // Of kOverruns, those with which the latest run() would have been the same; a bit each.
  unsigned same_overruns() const { return same_overruns_; }

 private:
  // Of a device with nothing to run.
  struct Outlook {
    Ticks next = kNever;  // when something that may run is known to be ready
    Ticks wake = kNever;  // when something changes
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
  int chunks_;  // of a device
  Bytes limit_;
  double ticks_per_second_ = 1;
  Ticks rounding_ = 0;  // makespans that differ by less are equal
  Ticks least_makespan_ = 0;
  std::vector<Device> devices_, fresh_;
  std::vector<Ticks> ready_;
  std::vector<Step> steps_;
  std::vector<std::uint8_t> owed_;
  Earliest earliest_;
  std::vector<int> woken_;  // by replay
  bool replaying_ = false;

  const ListResult* best_ = nullptr;
  static constexpr Ticks kFirstRemembered = 8;  // micro-batches
  Remembered remembered_;
  std::vector<Ticks> arrived_;  // by postpone
  Ticks next_remembered_ = 0;
  bool hopeless_ = false;  // no better than best_ any more
  Ticks idle_ = 0;
  Ticks bound_ = 0;  // the makespan is at least this
  std::size_t left_ = 0;
  unsigned same_overruns_ = 0;
};

}  // namespace penstock::schedule
