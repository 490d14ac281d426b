// SPDX-License-Identifier: Apache-2.0
// Explains configurations of other trainers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "plan/trainers/explain.h"
#include "python/bindings.h"
#include "python/interruption.h"

namespace penstock::python {
namespace {

nanobind::tuple explain(const std::string& megatron, const std::string& torchtitan, const std::string& origin,
                        std::int64_t gpus, const std::string& hardware, const std::string& limit) {
  const plan::Explained explained = released([&] {
    return plan::explain_configuration({.megatron = megatron,
                                        .torchtitan = torchtitan,
                                        .origin = origin,
                                        .gpus = gpus,
                                        .hardware = hardware,
                                        .limit = limit});
  });
  return nanobind::make_tuple(explained.text, explained.fits);
}

}  // namespace

void add_trainers(nanobind::module_& module) { module.def("explain", &explain); }

}  // namespace penstock::python
