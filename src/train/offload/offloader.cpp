// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/memory/offload_choice.h"

namespace penstock::train {
namespace {

using schedule::Op;
using schedule::OpKind;

// An expert rank's rows depend on the routing: if a record is smaller than planned, all of it leaves.
std::vector<backend::ParkedStorage> choose(const std::vector<c10::Storage>& storages, Bytes planned) {
  std::vector<Bytes> sizes;
  for (const c10::Storage& storage : storages) sizes.push_back(static_cast<Bytes>(storage.nbytes()));
  const Bytes there = std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
  const std::vector<Bytes> chosen = model::choose_leaving(sizes, std::min(planned, there));
  std::vector<backend::ParkedStorage> parked;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (chosen[i] > 0) parked.emplace_back(storages[i], chosen[i]);
  }
  return parked;
}

Bytes bytes_of(const std::vector<backend::ParkedStorage>& parked) {
  Bytes bytes = 0;
  for (const backend::ParkedStorage& storage : parked) bytes += storage.leaving();
  return bytes;
}

}  // namespace

Offloader::Offloader(const schedule::DeviceProgram& list, OffloadStore& store)
    : list_(list), rooms_(find_rooms(list)), store_(store) {}

void Offloader::offload(std::uint32_t op, const nn::Stage& stage, bool sliced) {
  const Op& copy = list_.ops[op];
  std::vector<backend::ParkedStorage>& parked = parked_[copy.key];
  parked = choose(stage.leavable({copy.key.micro_batch, copy.key.slice}, sliced), copy.bytes);
  std::vector<std::span<const std::byte>> parts;
  for (const backend::ParkedStorage& storage : parked) parts.push_back(storage.front());
  under_way_[op] = out_.post([store = &store_, parts = std::move(parts), offset = rooms_.begins[op]] {
    Bytes at = offset;
    for (const auto& part : parts) {
      store->write(at, part);
      at += static_cast<Bytes>(part.size());
    }
  });
  away_ += bytes_of(parked);
  facts_.away_peak = std::max(facts_.away_peak, away_);
}

void Offloader::reload(std::uint32_t op) {
  std::vector<std::span<std::byte>> parts;
  for (backend::ParkedStorage& storage : parked_.at(list_.ops[op].key)) parts.push_back(storage.come_back());
  under_way_[op] = in_.post([store = &store_, parts = std::move(parts), offset = rooms_.begins[op]] {
    Bytes at = offset;
    for (const auto& part : parts) {
      store->read(at, part);
      at += static_cast<Bytes>(part.size());
    }
  });
}

void Offloader::finish(std::uint32_t op) {
  const Op& copy = list_.ops[op];
  const bool out = copy.kind == OpKind::Offload;
  const auto posted = under_way_.extract(op);
  if (posted.empty()) return;
  Finished& finished = finished_.emplace_back(Finished{.op = op, .asked = backend::moment_now()});
  finished.times = (out ? out_ : in_).wait(posted.mapped());
  finished.ready = backend::moment_now();
  std::vector<backend::ParkedStorage>& parked = parked_.at(copy.key);
  const Bytes bytes = bytes_of(parked);
  facts_.bytes += bytes;
  if (out) {
    for (backend::ParkedStorage& storage : parked) storage.leave();
  } else {
    parked_.erase(copy.key);
    away_ -= bytes;
  }
}

void Offloader::report(const backend::DeviceClock& clock, const Note& note) {
  for (const Finished& copy : finished_) {
    const Seconds start = clock.seconds(copy.times.start), end = clock.seconds(copy.times.end);
    facts_.copying += end - start;
    facts_.waiting += clock.seconds(copy.ready) - clock.seconds(copy.asked);
    note(copy.op, {.start = start, .end = end});
  }
  finished_.clear();
}

void Offloader::throw_failure() {
  out_.throw_failure();
  in_.throw_failure();
}

}  // namespace penstock::train
