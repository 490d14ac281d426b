// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/v_pattern.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/generators/phases.h"

namespace penstock::schedule {

namespace {

enum Pass : std::uint8_t { DownForward, UpForward, UpBackward, DownBackward };
constexpr int kPeriod = 6;

struct Step {
  Pass pass;
  std::int32_t micro_batch;
};

struct Device {
  std::vector<Step> steps;  // the blocks' order; those before `next` have run
  std::size_t next = 0;
  std::vector<Action> weights;  // owed from `paid` on
  std::size_t paid = 0;
  int in_flight = 0;
  Order row;
};

class Squeeze {
 public:
  Squeeze(const std::vector<Block>& blocks, int micro_batches, int limit, int look_ahead)
      : limit_(limit),
        look_ahead_(look_ahead),
        devices_(blocks.size()),
        done_(blocks.size()),
        choices_(blocks.size()) {
    for (std::size_t rank = 0; rank < blocks.size(); ++rank)
      repeat(blocks[rank], micro_batches, devices_[rank]);
  }

  // Returns the makespan; all devices choose at the same instant, then all run.
  int run() {
    std::size_t left = devices_.size() * devices_[0].row.capacity();
    for (; left > 0; ++makespan_) {
      for (int rank = 0; rank < device_count(); ++rank) choices_[rank] = choose(rank);
      std::size_t ran = 0;
      for (int rank = 0; rank < device_count(); ++rank) ran += carry_out(rank, choices_[rank]);
      PENSTOCK_CHECK(ran > 0, "the blocks fit the limit in their own order, so some pass can always run");
      left -= ran;
    }
    return makespan_;
  }

  int makespan() const { return makespan_; }
  Order take(int rank) { return std::move(devices_[rank].row); }

 private:
  static constexpr int kNothing = -1;

  int device_count() const { return static_cast<int>(devices_.size()); }

  static void repeat(const Block& block, int micro_batches, Device& device) {
    std::array<int, 4> micro_batch{};
    device.steps.reserve(4 * micro_batches);
    for (int i = 0; i < 4 * micro_batches; ++i) {
      int first = kNothing, first_time = 0;
      for (int pass = 0; pass < 4; ++pass) {
        const int time = block[pass] + kPeriod * micro_batch[pass];
        if (micro_batch[pass] < micro_batches && (first == kNothing || time < first_time)) {
          first = pass;
          first_time = time;
        }
      }
      device.steps.push_back({static_cast<Pass>(first), micro_batch[first]++});
    }
    device.weights.reserve(2 * micro_batches);
    device.row.reserve(kPeriod * micro_batches);
  }

  bool ready(int rank, Step step) const {
    const int last = device_count() - 1, j = step.micro_batch;
    switch (step.pass) {
      case DownForward:
        return rank == 0 || done_[rank - 1][DownForward] > j;
      case UpForward:
        return rank == last ? done_[rank][DownForward] > j : done_[rank + 1][UpForward] > j;
      case UpBackward:
        return rank == 0 ? done_[rank][UpForward] > j : done_[rank - 1][UpBackward] > j;
      case DownBackward:
        break;
    }
    return rank == last ? done_[rank][UpBackward] > j : done_[rank + 1][DownBackward] > j;
  }

  // A forward needs room for itself and, after the W that are owed, for the forwards it overtakes.
  bool has_room(const Device& device, std::size_t at) const {
    int needed = device.in_flight + 1;
    int owed = static_cast<int>(device.weights.size() - device.paid);
    if (needed > limit_) return false;
    for (std::size_t i = device.next; i < at; ++i) {
      if (is_forward(device.steps[i].pass)) {
        ++needed;
      } else {
        ++owed;
      }
      if (needed - owed > limit_) return false;
    }
    return true;
  }

  static bool is_forward(Pass pass) { return pass == DownForward || pass == UpForward; }

  // The offset from `next` of the step to run, or kNothing.
  int choose(int rank) const {
    const Device& device = devices_[rank];
    const std::size_t end = std::min(device.next + look_ahead_, device.steps.size());
    for (std::size_t at = device.next; at < end; ++at) {
      const Step step = device.steps[at];
      const bool overtakes_itself = at > device.next && device.steps[at - 1].pass == step.pass;
      if (overtakes_itself || !ready(rank, step)) continue;
      if (!is_forward(step.pass) || has_room(device, at)) return static_cast<int>(at - device.next);
    }
    return kNothing;
  }

  int carry_out(int rank, int choice) {
    Device& device = devices_[rank];
    if (choice == kNothing) {
      if (device.paid == device.weights.size()) return 0;
      device.row.push_back(device.weights[device.paid++]);
      --device.in_flight;
      return 1;
    }
    const auto begin = device.steps.begin() + device.next++;
    std::rotate(begin, begin + choice, begin + choice + 1);
    const int stage =
        begin->pass == DownForward || begin->pass == DownBackward ? rank : 2 * device_count() - 1 - rank;
    if (is_forward(begin->pass)) {
      device.row.push_back(forward(stage, begin->micro_batch));
      ++device.in_flight;
    } else {
      device.row.push_back(backward_input(stage, begin->micro_batch));
      device.weights.push_back(backward_weight(stage, begin->micro_batch));
    }
    ++done_[rank][begin->pass];
    return 1;
  }

  int limit_;
  std::size_t look_ahead_;
  std::vector<Device> devices_;
  std::vector<std::array<int, 4>> done_;  // [device][pass]: micro-batches that have run
  std::vector<int> choices_;
  int makespan_ = 0;
};

}  // namespace

Schedule squeeze(const Request& request, const std::vector<Block>& blocks, int limit) {
  Squeeze in_order(blocks, request.micro_batches(), limit, 1);
  Squeeze overtaking(blocks, request.micro_batches(), limit, 2);
  Squeeze& shorter = in_order.run() <= overtaking.run() ? in_order : overtaking;
  Schedule schedule = empty_schedule(request, 2 * request.devices);
  for (int rank = 0; rank < request.devices; ++rank) schedule.devices[rank] = shorter.take(rank);
  return schedule;
}

}  // namespace penstock::schedule
