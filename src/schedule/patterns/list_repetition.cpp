// SPDX-License-Identifier: Apache-2.0
// Speeds up long steps: once all devices are in the same state as some micro-batches ago, the actions since
// then are repeated until the micro-batches, or a guide's repetitions, run out. So a rule takes the time of
// its warm-up, one period and its cool-down, whatever m is; the schedule is the same.
#include <algorithm>
#include <utility>

#include "schedule/patterns/list_scheduler.h"

namespace penstock::schedule {

namespace {

// Passes all state that later decisions depend on to `see`, number by number, relative to now and to the
// micro-batch that the first stage has just begun. Stops and returns false as soon as `see` returns false.
template <class See>
bool see_chunk(const Chunk& chunk, bool first_stage, std::uint32_t begun, Ticks now, const See& see) {
  for (const std::uint32_t next : chunk.next) {
    if (!see(begun - next)) return false;
  }
  for (const auto kind : {Step::Forward, Step::Input}) {
    if (first_stage && kind == Step::Forward) continue;  // all inputs are there
    for (const Ticks* ready = chunk.ready[kind] + chunk.next[kind]; *ready != kNever; ++ready) {
      if (!see(std::max(*ready, now) - now)) return false;
    }
  }
  return true;
}

template <class See>
bool see_device(const Device& device, Ticks now, const See& see) {
  if (!see(device.free - now) || !see(static_cast<std::uint64_t>(device.held)) || !see(device.waiting) ||
      !see(device.forward_latest) || !see(static_cast<std::uint64_t>(device.owed - device.paid)))
    return false;
  return std::all_of(device.paid, device.owed, see);
}

}  // namespace

template <class See>
bool ListScheduler::see_state(Ticks now, const See& see) const {
  const std::uint32_t begun = devices_[0].chunks[0].next[Step::Forward];
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    const Ticks event = earliest_.time_of(static_cast<int>(d));
    if (!see(event == kNever ? kNever : event - now) || !see_device(device, now, see)) return false;
    for (int c = 0; c < chunks_; ++c) {
      if (!see_chunk(device.chunks[c], d == 0 && c == 0, begun, now, see)) return false;
    }
  }
  return true;
}

void ListScheduler::remember(Ticks now) {
  remembered_.state.clear();
  see_state(now, [&](std::uint64_t value) {
    remembered_.state.push_back(value);
    return true;
  });
  remembered_.devices = devices_;
  remembered_.micro_batch = devices_[0].chunks[0].next[Step::Forward];
  remembered_.now = now;
  remembered_.idle = idle_;
  remembered_.left = left_;
}

void ListScheduler::look_for_repetition(Ticks now) {
  const std::uint32_t begun = devices_[0].chunks[0].next[Step::Forward];
  if (remembered_.micro_batch > 0 && is_remembered(now)) {
    const std::uint32_t period = begun - remembered_.micro_batch;
    const std::size_t times = repetitions(period);
    if (times > 0) repeat(period, times, now);
    remembered_.micro_batch = 0;
    next_remembered_ = times > 0 ? kNever : begun + kFirstRemembered;
  } else if (begun >= next_remembered_) {
    remember(now);
    next_remembered_ = begun + std::max<Ticks>(kFirstRemembered, begun / 4);
  }
}

bool ListScheduler::is_remembered(Ticks now) const {
  auto expected = remembered_.state.begin();
  const auto end = remembered_.state.end();
  return see_state(now, [&](std::uint64_t value) { return expected != end && *expected++ == value; }) &&
         expected == end;
}

// Returns how many more times the actions since the remembered state can be repeated.
std::size_t ListScheduler::repetitions(std::size_t period) const {
  const std::uint32_t begun = devices_[0].chunks[0].next[Step::Forward];
  std::size_t times = (static_cast<std::size_t>(micro_batches_) - begun) / period;
  for (std::size_t d = 0; d < devices_.size() && times > 0; ++d) {
    const Device& device = devices_[d];
    if (!device.guide) continue;
    const Step* before = remembered_.devices[d].guide;
    const auto length = static_cast<std::size_t>(device.guide - before);
    const Step* differs = std::mismatch(device.guide, device.guide_end, before).first;
    times = length == 0 ? 0 : std::min(times, static_cast<std::size_t>(differs - device.guide) / length);
  }
  return times;
}

// Moves the arrival times of unused inputs to later micro-batches.
void ListScheduler::postpone(Ticks* ready, std::size_t micro_batches, Ticks shift) {
  arrived_.clear();
  for (Ticks* each = ready; *each != kNever; ++each) arrived_.push_back(std::exchange(*each, 0) + shift);
  std::ranges::copy(arrived_, ready + micro_batches);
}

void ListScheduler::repeat(std::size_t period, std::size_t times, Ticks now) {
  const Ticks shift = (now - remembered_.now) * times;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    const Device& before = remembered_.devices[d];
    const auto steps = device.next - before.next;
    for (std::size_t i = 0; i < times; ++i)
      device.next = std::copy_n(device.next - steps, steps, device.next);
    device.guide += static_cast<std::ptrdiff_t>(times) * (device.guide - before.guide);
    device.free += shift;
    device.work -= times * (before.work - device.work);
    device.chain -= times * (before.chain - device.chain);
    for (int c = 0; c < chunks_; ++c) {
      Chunk& chunk = device.chunks[c];
      for (const auto kind : {Step::Forward, Step::Input}) {
        const bool all_there = d == 0 && c == 0 && kind == Step::Forward;
        if (!all_there) postpone(chunk.ready[kind] + chunk.next[kind], period * times, shift);
      }
      for (std::uint32_t& next : chunk.next) next += static_cast<std::uint32_t>(period * times);
      for (const auto kind : {Step::Forward, Step::Input})
        device.heads[kind][c] = chunk.ready[kind][chunk.next[kind]];
    }
    const Ticks event = earliest_.time_of(static_cast<int>(d));
    if (event != kNever) earliest_.set(static_cast<int>(d), event + shift);
  }
  idle_ += times * (idle_ - remembered_.idle);
  left_ -= times * (remembered_.left - left_);
}

}  // namespace penstock::schedule
