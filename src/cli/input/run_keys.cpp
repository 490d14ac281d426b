// SPDX-License-Identifier: Apache-2.0
#include "cli/input/run_keys.h"

namespace penstock::cli {

void take_run_keys(CLI::App& command) {
  command.allow_extras();
  command.footer(
      "Each key of a run file can be given here too, as --section.key VALUE; penstock train --help lists "
      "them.");
}

}  // namespace penstock::cli
