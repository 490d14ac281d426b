// SPDX-License-Identifier: Apache-2.0
// attempts.json, as the report reads it.
#include <stdexcept>

#include "base/error.h"
#include "cli/report/run_record.h"
#include "fuzz/driver.h"

namespace {

void take(std::string_view input) {
  penstock::report::Run run;
  if (!penstock::cli::add_attempts(input, run)) throw penstock::InputError("no attempts");
  for (const auto& row : run.tables.at(0).rows) {
    if (row.size() != run.tables[0].header.size())
      throw std::logic_error("a row has other cells than the table");
  }
}

}  // namespace

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, take); }
