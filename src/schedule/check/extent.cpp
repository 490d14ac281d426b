// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/extent.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

using Counts = std::vector<std::int64_t>;

template <typename Visit>
void for_each_compute(const Schedule& schedule, Visit visit) {
  for (int device = 0; device < schedule.device_count(); ++device) {
    const std::vector<Action>& row = schedule.devices[device];
    for (int position = 0; position < static_cast<int>(row.size()); ++position) {
      if (is_compute(row[position].kind)) visit(row[position], device, position);
    }
  }
}

std::int64_t count_compute(const Schedule& schedule) {
  std::int64_t count = 0;
  for_each_compute(schedule, [&](const Action&, int, int) { ++count; });
  return count;
}

// Counts how often each number occurs. N actions name at most N numbers, so the first gap is at N or before.
template <typename NumberOf>
Counts count_numbers(const Schedule& schedule, std::int64_t size, std::int64_t actions, NumberOf number_of) {
  Counts counts(static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, actions)));
  for_each_compute(schedule, [&](const Action& action, int, int) {
    const std::int64_t number = number_of(action);
    if (number >= 0 && number < std::ssize(counts)) ++counts[number];
  });
  return counts;
}

// A number that only one action names, while many name each of the others, is a mistake of that action.
bool is_stray(std::int64_t count, std::int64_t actions, std::int64_t numbers) {
  return count == 1 && numbers > 1 && actions - 1 >= 3 * (numbers - 1);
}

int first_gap(std::span<const std::int64_t> counts, std::int64_t actions) {
  const std::int64_t used = std::ranges::count_if(counts, [](std::int64_t count) { return count > 0; });
  const auto gap = std::ranges::find_if(
      counts, [&](std::int64_t count) { return count == 0 || is_stray(count, actions, used); });
  return static_cast<int>(gap - counts.begin());
}

// The number of slices of each micro-batch up to its first gap.
std::vector<int> slice_extents(const Schedule& schedule, const Counts& actions_of, int micro_batches) {
  std::vector<std::int64_t> begin{0};
  for (int j = 0; j < micro_batches; ++j) {
    begin.push_back(begin.back() + std::clamp<std::int64_t>(schedule.slices[j], 0, actions_of[j]));
  }
  Counts counts(static_cast<std::size_t>(begin.back()));
  for_each_compute(schedule, [&](const Action& action, int, int) {
    const int j = action.key.micro_batch;
    if (j < 0 || j >= micro_batches || action.key.slice < 0 || action.key.slice >= begin[j + 1] - begin[j])
      return;
    ++counts[begin[j] + action.key.slice];
  });
  std::vector<int> extents;
  for (int j = 0; j < micro_batches; ++j) {
    const std::span<const std::int64_t> own(counts.data() + begin[j], counts.data() + begin[j + 1]);
    extents.push_back(first_gap(own, actions_of[j]));
  }
  return extents;
}

std::string number_text(const char* what, int number) {
  return std::string(what) + ' ' + std::to_string(number);
}

std::string slice_text(int slice, int micro_batch) {
  return number_text("slice", slice) + " of " + number_text("micro-batch", micro_batch);
}

// Reports the first action beyond each gap.
class Beyond {
 public:
  Beyond(const Schedule& schedule, const Extent& extent, Findings& findings)
      : schedule_(schedule),
        extent_(extent),
        findings_(findings),
        slice_told_(extent.micro_batches(), false) {}

  void tell() {
    for_each_compute(schedule_, [&](const Action& action, int device, int position) {
      if (!findings_.full() && !extent_.contains(action.key)) visit(action, device, position);
    });
    tell_missing();
  }

 private:
  void visit(const Action& action, int device, int position) {
    const int j = action.key.micro_batch;
    if (action.key.stage < 0 || action.key.stage >= extent_.stages) {
      tell_once(stage_told_, action, device, position, number_text("stage", action.key.stage),
                number_text("stage", extent_.stages));
    } else if (j < 0 || j >= extent_.micro_batches()) {
      tell_once(micro_batch_told_, action, device, position, number_text("micro-batch", j),
                number_text("micro-batch", extent_.micro_batches()));
    } else {
      bool told = slice_told_[j];
      tell_once(told, action, device, position, slice_text(action.key.slice, j),
                slice_text(extent_.slices_of(j), j));
      slice_told_[j] = told;
    }
  }

  void tell_once(bool& told, const Action& action, int device, int position, const std::string& named,
                 const std::string& absent) {
    if (told) return;
    told = true;
    const std::string token = to_token(action, is_sliced(schedule_));
    const std::string reason = named == absent
                                   ? " is the only action of " + named
                                   : " names " + named + ", outside the schedule: no action names " + absent;
    findings_.add(
        {Rule::Range, device, position, action, place_text(device, position) + ": " + token + reason});
  }

  void tell_missing() {
    if (extent_.stages < schedule_.stages && !stage_told_) {
      missing(forward(extent_.stages, 0), number_text("stage", extent_.stages),
              "the schedule has " + counted(schedule_.stages, "stage"));
    }
    if (extent_.micro_batches() < schedule_.micro_batches() && !micro_batch_told_) {
      missing(forward(0, extent_.micro_batches()), number_text("micro-batch", extent_.micro_batches()),
              "the schedule has " + counted(schedule_.micro_batches(), "micro-batch"));
    }
    for (int j = 0; j < extent_.micro_batches() && !findings_.full(); ++j) {
      const int slice = extent_.slices_of(j);
      if (slice >= schedule_.slices[j] || slice_told_[j]) continue;
      missing(forward(0, j, slice), slice_text(slice, j), "it has " + counted(schedule_.slices[j], "slice"));
    }
  }

  void missing(const Action& action, const std::string& what, const std::string& although) {
    findings_.add({Rule::Missing, -1, -1, action, "no device runs " + what + ", although " + although});
  }

  const Schedule& schedule_;
  const Extent& extent_;
  Findings& findings_;
  bool stage_told_ = false;
  bool micro_batch_told_ = false;
  std::vector<bool> slice_told_;
};

}  // namespace

Extent find_extent(const Schedule& schedule, Findings& findings) {
  const std::int64_t actions = count_compute(schedule);
  const Counts stages =
      count_numbers(schedule, schedule.stages, actions, [](const Action& a) { return a.key.stage; });
  const Counts micro_batches = count_numbers(schedule, schedule.micro_batches(), actions,
                                             [](const Action& a) { return a.key.micro_batch; });
  Extent extent{.stages = first_gap(stages, actions)};
  for (const int n : slice_extents(schedule, micro_batches, first_gap(micro_batches, actions))) {
    extent.first_slice.push_back(extent.first_slice.back() + n);
  }
  Beyond(schedule, extent, findings).tell();
  return extent;
}

}  // namespace penstock::schedule
