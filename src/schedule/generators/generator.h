// SPDX-License-Identifier: Apache-2.0
// The list of schedules. A generator says what to compute, never how to run it: it emits compute actions
// only. Adding one = one file in this folder + one line in catalogue.inc; show, check, simulate, train and
// the law tests pick it up from there. plan takes those whose closed forms it has (plan/in_flight.cpp).
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
  std::string_view summary;         // one line: what it is, and the paper
  std::string_view sliced_sibling;  // for unsliced schedules: what to use with n > 1; empty: takes slices
  int default_chunks = 1;
  bool any_chunks = false;             // takes any v; otherwise v = default_chunks
  bool takes_groups = false;           // of slices, with v > 1
  bool fixed_gradient_order = true;    // backwards of a stage ascend over micro-batches: bits equal 1f1b's
  bool replicates_parameters = false;  // each stage lives on two devices (dualpipe)
  bool made_for_costs = false;         // by Request::costs (greedy); others ignore them
  bool takes_vocabulary = false;       // runs with the vocabulary over all devices (passes/vocabulary.h)
};

std::span<const Generator> generators();

// Throws InputError naming the nearest known name.
const Generator& find_generator(std::string_view name);

// The request with its chunks filled in. p, m, n and v are positive and within the limits of text.h, so that
// a list of all stages can be made; a schedule without slices has n = 1. Throws InputError with the
// constraint and what would be right.
Request checked_request(std::string_view name, const Request& request);

// Checks the request and generates. Throws InputError with the constraint and the nearest legal values.
Schedule generate(std::string_view name, const Request& request);

}  // namespace penstock::schedule
