// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/squeeze.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

namespace {

struct SqueezedDevice {
  std::vector<BlockStep> steps;  // steps before `next` have run
  std::size_t next = 0;
  std::vector<Action> weights;  // pending from `paid` on
  std::size_t paid = 0;
  int in_flight = 0;
  Order row;

  bool owes_weights() const { return paid < weights.size(); }
};

bool is_forward(Pass pass) { return pass == DownForward || pass == UpForward; }

class Squeeze {
 public:
  Squeeze(const std::vector<Block>& blocks, int micro_batches, int limit, int look_ahead)
      : limit_(limit),
        look_ahead_(look_ahead),
        devices_(blocks.size()),
        done_(blocks.size()),
        choices_(blocks.size()) {
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      devices_[rank].steps = repeat(blocks[rank], micro_batches);
      devices_[rank].weights.reserve(2 * micro_batches);
      devices_[rank].row.reserve(6 * micro_batches);
    }
    left_ = blocks.size() * 6 * micro_batches;
  }

  // Returns the makespan. In each time unit all devices choose based on the state before it.
  int run() {
    int now = 0;
    for (; left_ > 0; ++now) {
      const std::size_t left_before = left_;
      for (int rank = 0; rank < device_count(); ++rank) choices_[rank] = choose(rank);
      for (int rank = 0; rank < device_count(); ++rank) {
        if (choices_[rank] == kNothing) {
          run_weight(devices_[rank]);
        } else {
          run_step(rank, choices_[rank]);
        }
      }
      PENSTOCK_CHECK(left_ < left_before,
                     "the blocks fit the limit in their own order, so something can run");
    }
    return now;
  }

  Order take(int rank) { return std::move(devices_[rank].row); }

 private:
  static constexpr int kNothing = -1;

  int device_count() const { return static_cast<int>(devices_.size()); }

  bool has_run(int rank, Pass pass, int micro_batch) const { return done_[rank][pass] > micro_batch; }

  // A pass depends on the same pass on the previous device; where a V turns or begins, on the previous pass.
  bool ready(int rank, BlockStep step) const {
    const bool first = rank == 0, last = rank == device_count() - 1;
    const int j = step.micro_batch;
    switch (step.pass) {
      case DownForward:
        return first || has_run(rank - 1, DownForward, j);
      case UpForward:
        return last ? has_run(rank, DownForward, j) : has_run(rank + 1, UpForward, j);
      case UpBackward:
        return first ? has_run(rank, UpForward, j) : has_run(rank - 1, UpBackward, j);
      case DownBackward:
        return last ? has_run(rank, UpBackward, j) : has_run(rank + 1, DownBackward, j);
    }
    return false;
  }

  // A forward needs room for itself and, once the pending W have run, for the forwards that it overtakes.
  bool has_room(const SqueezedDevice& device, std::size_t at) const {
    int in_flight = device.in_flight + 1;
    int owed = static_cast<int>(device.weights.size() - device.paid);
    bool room = in_flight <= limit_;
    for (std::size_t i = device.next; i < at; ++i) {
      int& more = is_forward(device.steps[i].pass) ? in_flight : owed;
      ++more;
      room = room && in_flight - owed <= limit_;
    }
    return room;
  }

  // Returns the offset of the step to run from the next step, or kNothing.
  int choose(int rank) const {
    const SqueezedDevice& device = devices_[rank];
    const std::size_t end = std::min(device.next + look_ahead_, device.steps.size());
    for (std::size_t at = device.next; at < end; ++at) {
      const BlockStep step = device.steps[at];
      const bool overtakes_its_like = at > device.next && device.steps[at - 1].pass == step.pass;
      if (overtakes_its_like || !ready(rank, step)) continue;
      if (!is_forward(step.pass) || has_room(device, at)) return static_cast<int>(at - device.next);
    }
    return kNothing;
  }

  void run_weight(SqueezedDevice& device) {
    if (!device.owes_weights()) return;
    device.row.push_back(device.weights[device.paid++]);
    --device.in_flight;
    --left_;
  }

  void run_step(int rank, int choice) {
    SqueezedDevice& device = devices_[rank];
    const auto next = device.steps.begin() + device.next++;
    std::rotate(next, next + choice, next + choice + 1);
    const bool down = next->pass == DownForward || next->pass == DownBackward;
    const int stage = down ? rank : 2 * device_count() - 1 - rank;
    if (is_forward(next->pass)) {
      device.row.push_back(forward(stage, next->micro_batch));
      ++device.in_flight;
    } else {
      device.row.push_back(backward_input(stage, next->micro_batch));
      device.weights.push_back(backward_weight(stage, next->micro_batch));
    }
    ++done_[rank][next->pass];
    --left_;
  }

  int limit_;
  std::size_t look_ahead_;
  std::vector<SqueezedDevice> devices_;
  std::vector<std::array<int, kPasses>> done_;  // [device][pass] number of micro-batches that have run
  std::vector<int> choices_;
  std::size_t left_ = 0;
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
