// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/list_scheduler.h"

#include <algorithm>

#include "base/interruption.h"

namespace penstock::schedule {
namespace {

using Prefer = ListRule::Prefer;

}  // namespace

bool ListScheduler::is_best(const ListResult& result) const {
  return result.idle == 0 && result.makespan <= least_makespan_ + (result.makespan >> 40);
}

void ListScheduler::reset(const StepRows* guide, const ListResult* best) {
  devices_ = fresh_;
  std::ranges::fill(ready_, kNever);
  std::fill_n(ready_.begin(), micro_batches_, 0);  // F of stage 0
  devices_.front().heads[Step::Forward][0] = 0;
  const std::size_t actions = std::size_t{3} * chunks_ * micro_batches_;
  steps_.resize(actions * devices_.size());
  owed_.resize(actions / 3 * devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    device.row = device.next = &steps_[d * actions];
    device.owed = device.paid = &owed_[d * actions / 3];
    if (!guide) continue;
    device.guide = (*guide)[d].data();
    device.guide_end = device.guide + (*guide)[d].size();
  }
  best_ = best;
  rounding_ = best ? best->makespan >> 40 : 0;  // about 1e-12
  hopeless_ = best && is_best(*best);
  idle_ = 0;
  bound_ = least_makespan_;
  left_ = steps_.size();
  remembered_.micro_batch = 0;
  next_remembered_ = kFirstRemembered;
  same_overruns_ = (1u << kOverrunCount) - 1;
}

std::optional<ListResult> ListScheduler::run(const ListRule& rule, const ListResult* best) {
  reset(rule.guide, best);
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) earliest_.set(device, 0);
  while (!earliest_.none() && !hopeless_) {
    allow_interruption();
    decide(earliest_.device(), earliest_.time(), rule);
  }
  return result();
}

std::optional<ListResult> ListScheduler::result() {
  if (left_ > 0 || hopeless_) return std::nullopt;
  ListResult result{.makespan = 0, .idle = idle_, .rows = {}};
  for (const Device& device : devices_) {
    result.makespan = std::max(result.makespan, device.free);
    result.rows.emplace_back(device.row, device.next);
  }
  if (!best_ || result.makespan + rounding_ < best_->makespan) return result;
  if (result.makespan > best_->makespan + rounding_ || idle_ >= best_->idle) return std::nullopt;
  return result;
}

void ListScheduler::decide(int number, Ticks now, const ListRule& rule) {
  Device& device = devices_[number];
  Outlook outlook;
  Step step;
  if (rule.guide ? follow_guide(device, now, step, outlook) : choose_freely(device, now, rule, step)) {
    start(number, step, now);
    if (number == 0 && step == Step{Step::Forward, 0}) look_for_repetition(now);
    return;
  }
  if (!rule.guide) outlook = look_ahead(device, now);
  if (device.paid != device.owed && takes_weight(device, outlook, now, rule.overrun)) {
    return start(number, {Step::Weight, *device.paid}, now);
  }
  device.waiting = true;
  outlook.wake == kNever ? earliest_.unset(number) : earliest_.set(number, outlook.wake);
}

// With no F or I to run now: returns whether there is time for a W, or no room for anything else.
bool ListScheduler::takes_weight(const Device& device, const Outlook& outlook, Ticks now, int overrun) {
  if (outlook.short_of_room || outlook.next == kNever) return true;
  const Ticks gap = outlook.next - now;
  unsigned takers = 0;
  for (int k = 0; k < kOverrunCount; ++k) {
    takers |= static_cast<unsigned>(gap >= device.chunks[*device.paid].thresholds[k]) << k;
  }
  const bool takes = takers >> overrun & 1;
  same_overruns_ &= takes ? takers : ~takers;
  return takes;
}

// Takes the guide's next F or I if there is one and it can start.
bool ListScheduler::follow_guide(Device& device, Ticks now, Step& step, Outlook& outlook) const {
  while (device.guide != device.guide_end && device.guide->kind == Step::Weight) ++device.guide;
  if (device.guide == device.guide_end) return false;
  step = *device.guide;
  const Ticks ready = device.heads[step.kind][step.chunk];
  const bool room = step.kind == Step::Input || device.held + device.chunks[step.chunk].record <= limit_;
  if (ready <= now && room) {
    ++device.guide;
    return true;
  }
  if (room) outlook.next = ready;
  if (ready > now) outlook.wake = ready;
  outlook.short_of_room = ready <= now;
  return false;
}

// Chooses among the next F and the next I of each chunk whose inputs are there.
bool ListScheduler::choose_freely(const Device& device, Ticks now, const ListRule& rule, Step& step) const {
  const auto& [forward, input] = device.heads;
  const bool inputs = std::min(input[0], input[1]) <= now;
  const bool prefers_input =
      rule.prefer == Prefer::Inputs || (rule.prefer == Prefer::Alternate && device.forward_latest);
  const auto pick = [&](Step::Kind kind, bool first, bool second, bool later) {
    step = {kind, static_cast<std::uint8_t>(first && second ? later : second)};
    return true;
  };
  const auto pick_input = [&] {
    const std::uint32_t first = device.chunks[0].next[Step::Input],
                        second = device.chunks[1].next[Step::Input];
    return pick(Step::Input, input[0] <= now, input[1] <= now,
                first == second ? rule.later_chunks_first : second < first);
  };
  if (inputs && prefers_input) return pick_input();
  const bool first = forward[0] <= now && has_room(device, 0),
             second = forward[1] <= now && has_room(device, 1);
  if (first || second) return pick(Step::Forward, first, second, rule.later_chunks_first);
  return inputs && pick_input();
}

// With no F or I to run now: looks at the inputs that are not there yet.
ListScheduler::Outlook ListScheduler::look_ahead(const Device& device, Ticks now) const {
  Outlook outlook;
  for (const int c : {0, 1}) {
    const Ticks forward = device.heads[Step::Forward][c], input = device.heads[Step::Input][c];
    outlook.wake = std::min(outlook.wake, input);
    outlook.next = std::min(outlook.next, input);
    if (forward == kNever) continue;
    if (forward <= now) {
      outlook.short_of_room = true;
    } else {
      outlook.wake = std::min(outlook.wake, forward);
      if (has_room(device, c)) outlook.next = std::min(outlook.next, forward);
    }
  }
  return outlook;
}

// Enough memory for this F and, after it, for the remaining F of the oldest micro-batch that has begun here:
// so that one can always finish, and its memory is then free for the next one.
bool ListScheduler::has_room(const Device& device, int chunk) const {
  if (device.held + device.chunks[chunk].record > limit_) return false;
  if (chunks_ == 1) return true;
  const auto forwards = [&](int c) { return device.chunks[c].next[Step::Forward] + (c == chunk); };
  const std::uint32_t first = forwards(0), second = forwards(1);
  if (first == second) return true;
  const std::uint32_t oldest = std::min(first, second);
  const auto promised = [&](std::uint32_t begun, int c) {
    return device.chunks[c].record * std::max<Bytes>(begun - oldest, 1);
  };
  return promised(first, 0) + promised(second, 1) <= limit_;
}

void ListScheduler::count_idle(Device& device, Ticks now) {
  if (now == device.free) return;
  if (device.next != device.row) idle_ += now - device.free;
  const Ticks end = now + std::max(device.work, device.chain > 0 ? device.chain + device.tail : 0);
  bound_ = std::max(bound_, end);
  if (!best_) return;
  hopeless_ =
      bound_ > best_->makespan + rounding_ || (bound_ + rounding_ >= best_->makespan && idle_ >= best_->idle);
}

void ListScheduler::start(int number, Step step, Ticks now) {
  Device& device = devices_[number];
  Chunk& chunk = device.chunks[step.chunk];
  count_idle(device, now);
  *device.next++ = step;
  --left_;
  const Ticks seconds = chunk.seconds[step.kind];
  device.free = now + seconds;
  device.work -= seconds;
  device.waiting = false;
  if (!replaying_) earliest_.set(number, device.free);
  const std::uint32_t micro_batch = chunk.next[step.kind]++;
  if (step.kind == Step::Weight) {
    device.held -= chunk.record;
    ++device.paid;
    return;
  }
  device.chain -= seconds;
  device.heads[step.kind][step.chunk] = chunk.ready[step.kind][micro_batch + 1];
  device.forward_latest = step.kind == Step::Forward;
  if (device.forward_latest) {
    device.held += chunk.record;
  } else {
    *device.owed++ = step.chunk;
  }
  const Way& way = chunk.way[step.kind];
  const Ticks arrival = device.free + way.delay;
  way.ready[micro_batch] = arrival;
  Device& reader = devices_[way.device];
  Ticks& head = reader.heads[way.kind][way.chunk];
  if (reader.chunks[way.chunk].next[way.kind] == micro_batch) head = arrival;
  if (!reader.waiting) return;
  if (replaying_) {
    reader.waiting = false;
    woken_.push_back(way.device);
  } else {
    earliest_.advance(way.device, arrival);
  }
}

std::optional<ListResult> ListScheduler::replay(const StepRows& schedule, const ListResult* best) {
  reset(&schedule, best);
  replaying_ = true;
  woken_.clear();
  for (int device = static_cast<int>(devices_.size()); device-- > 0;) woken_.push_back(device);
  while (!woken_.empty() && !hopeless_) {
    const int device = woken_.back();
    woken_.pop_back();
    if (!replay_device(device)) break;
  }
  replaying_ = false;
  return result();
}

// Replays the device as far as its inputs are known; returns false if an F does not fit.
bool ListScheduler::replay_device(int number) {
  Device& device = devices_[number];
  for (; device.guide != device.guide_end; ++device.guide) {
    const Step step = *device.guide;
    const Chunk& chunk = device.chunks[step.chunk];
    if (step.kind == Step::Weight) {
      start(number, step, device.free);
      continue;
    }
    const Ticks ready = device.heads[step.kind][step.chunk];
    device.waiting = ready == kNever;
    if (device.waiting) return true;
    if (step.kind == Step::Forward && device.held + chunk.record > limit_) return false;
    start(number, step, std::max(ready, device.free));
    if (hopeless_) return false;
  }
  return true;
}

}  // namespace penstock::schedule
