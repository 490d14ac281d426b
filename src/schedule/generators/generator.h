// SPDX-License-Identifier: Apache-2.0
// The list of schedule generators. A generator emits compute actions only, nothing about how to run them. To
// add one, add a file in this folder and a line in catalogue.inc; show, check, simulate, train and the law
// tests pick it up from there. `plan` offers only those with closed forms in plan/in_flight.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// m micro-batches of n slices each.
Request request(int devices, int micro_batches, int slices = 1, int chunks = 0);

struct Generator {
  Schedule (*generate)(const Request&) = nullptr;
  std::string_view name;
  std::string_view summary;         // one line: description and paper
  std::string_view sliced_sibling;  // schedule to use for n > 1; empty if this one takes slices
  int default_chunks = 1;
  bool any_chunks = false;             // takes any v; otherwise v = default_chunks
  bool takes_groups = false;           // accepts Request::group if v > 1
  bool fixed_gradient_order = true;    // a stage's backwards ascend over micro-batches: bit-equal to 1f1b
  bool replicates_parameters = false;  // each stage lives on two devices (dualpipe)
  bool made_for_costs = false;         // uses Request::costs (greedy); others ignore it
  bool takes_vocabulary = false;       // supports vocabulary parallelism (passes/vocabulary.h)
};

std::span<const Generator> generators();

// Throws InputError with the nearest known name.
const Generator& find_generator(std::string_view name);

// Returns the request with its chunks filled in. p, m, n and v are then positive and within the limits of
// text.h, so that a list of all stages fits in memory; an unsliced schedule has n = 1. Throws InputError with
// the violated constraint and legal values.
Request checked_request(std::string_view name, const Request& request);

// Checks the request and generates. Throws InputError with the constraint and the nearest legal values.
Schedule generate(std::string_view name, const Request& request);

}  // namespace penstock::schedule
