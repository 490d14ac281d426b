// SPDX-License-Identifier: Apache-2.0
#include "plan/in_flight.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::plan {
namespace {

bool in_rounds(ScheduleKind kind) {
  return kind == ScheduleKind::Interleaved || kind == ScheduleKind::SeqInterleaved;
}

bool takes_chunks(ScheduleKind kind) {
  return in_rounds(kind) || kind == ScheduleKind::BreadthFirst || kind == ScheduleKind::SlimPipe;
}

// Of at least p slices each, as far as there are as many.
int rounds(const PipelineShape& shape) {
  const int least = ceil_div(shape.devices, shape.slices);
  return std::max(1, shape.micro_batches / least);
}

// Slices per round: p when m·n is a multiple of p.
int round_size(const PipelineShape& shape) { return shape.micro_batches / rounds(shape) * shape.slices; }

}  // namespace

ScheduleKind parse_schedule(std::string_view name) {
  const auto found = std::find(kScheduleNames.begin(), kScheduleNames.end(), name);
  if (found != kScheduleNames.end()) return static_cast<ScheduleKind>(found - kScheduleNames.begin());
  throw InputError("schedule \"" + printable(name) + "\" is none that can be planned" +
                   instead_of(name, kScheduleNames));
}

bool is_sliced(ScheduleKind kind) {
  return kind == ScheduleKind::TeraPipe || kind == ScheduleKind::Seq1F1B || kind == ScheduleKind::SlimPipe ||
         kind == ScheduleKind::SeqInterleaved;
}

bool is_v_shaped(ScheduleKind kind) {
  return kind == ScheduleKind::ZbV || kind == ScheduleKind::VHalf || kind == ScheduleKind::VMin ||
         kind == ScheduleKind::DualPipeV || kind == ScheduleKind::Greedy;
}

bool splits_backward(ScheduleKind kind) {
  return is_v_shaped(kind) || kind == ScheduleKind::ZbH1 || kind == ScheduleKind::ZbH2;
}

bool takes(ScheduleKind kind, const PipelineShape& shape) {
  if (shape.slices > 1 && !is_sliced(kind)) return false;
  if (is_v_shaped(kind)) return shape.chunks == 2;
  if (shape.chunks > 1 && !takes_chunks(kind)) return false;
  if (shape.chunks == 1 && (in_rounds(kind) || kind == ScheduleKind::BreadthFirst)) return false;
  if (kind == ScheduleKind::SlimPipe && shape.chunks > 1) return shape.slices >= shape.devices;
  return !in_rounds(kind) || shape.micro_batches % rounds(shape) == 0;
}

double records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const double p = shape.devices, n = shape.slices, v = shape.chunks, after = p - rank - 1;
  const double all = static_cast<double>(shape.micro_batches) * n * v;
  switch (kind) {
    case ScheduleKind::GPipe:
    case ScheduleKind::TeraPipe:
    case ScheduleKind::BreadthFirst:
      return all;
    case ScheduleKind::OneFOneB:
    case ScheduleKind::Seq1F1B:
      return std::min(all, n + after);
    case ScheduleKind::Interleaved:
    case ScheduleKind::SeqInterleaved:
      return std::min(all, (v - 1) * round_size(shape) + 2 * after + n);
    case ScheduleKind::SlimPipe:
      return std::min(all, n * v + 2 * after);
    case ScheduleKind::ZbH1:
      return std::min(all, 1 + after);
    case ScheduleKind::ZbH2:
      return std::min(all, 2 * after + 1);
    case ScheduleKind::ZbV:
    case ScheduleKind::Greedy:
      return std::min(all, 2 * p);
    case ScheduleKind::DualPipeV:
      return std::min(all, 2 * p + 1);
    case ScheduleKind::VHalf:
      return std::min(all, 2 * (static_cast<double>(shape.devices / 2) + 1));
    case ScheduleKind::VMin:
      return std::min(all, 2 * static_cast<double>((shape.devices + 4) / 3));
  }
  PENSTOCK_CHECK(false, "every schedule has a form");
}

double weight_records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const double all = static_cast<double>(shape.micro_batches) * shape.chunks;
  switch (kind) {
    case ScheduleKind::ZbH1:
      return std::min(all, 1.0 + rank);
    case ScheduleKind::ZbH2:
    case ScheduleKind::ZbV:
    case ScheduleKind::DualPipeV:
      return std::min(all, 1.0 + 2 * rank);
    case ScheduleKind::Greedy:
    case ScheduleKind::VHalf:
    case ScheduleKind::VMin:
      return records_in_flight(kind, shape, rank);
    default:
      return 0.0;
  }
}

double ramp_slots(ScheduleKind kind, const PipelineShape& shape) {
  const double p = shape.devices, m = shape.micro_batches, v = shape.chunks;
  const auto units = [](double idle) { return std::max(0.0, idle / 3); };  // of a forward: F = I = W
  switch (kind) {
    case ScheduleKind::ZbH1:
      return units(p - 1 + std::max(0.0, p - m));
    case ScheduleKind::ZbH2:
      return units(p - 1 + std::floor(std::max(0.0, 2 * p - 1 - m) / 2));
    case ScheduleKind::ZbV:
      return units(std::max(p - 1, 4 * p - 2 - 2 * m));
    case ScheduleKind::DualPipeV:
      if (m >= 2 * p) return units(p - 1);
      return units(m > p ? 5 * p - 1 - 2 * m : 5 * p - 3 - 2 * m);
    case ScheduleKind::Greedy:
      return units(std::max(p - 1, 4 * (p - m) - 1));
    case ScheduleKind::VHalf:
      return units(std::max(shape.devices % 2 == 0 ? std::max(3 * p - 7, 1.0) : 3 * p - 4, 4 * (p - m) - 1));
    case ScheduleKind::VMin:
      return units(shape.devices % 3 == 0 ? 4 * p - 7 : 4 * p - 5);
    case ScheduleKind::Interleaved:
    case ScheduleKind::SeqInterleaved:
    case ScheduleKind::BreadthFirst:
      // Rounds of fewer units than there are devices leave a gap at every change of chunk.
      return p - 1 + (v - 1) * std::max(0.0, p - m * shape.slices);
    default:
      return p - 1;
  }
}

}  // namespace penstock::plan
