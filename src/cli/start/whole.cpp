// SPDX-License-Identifier: Apache-2.0
#include "cli/start/whole.h"

namespace penstock::cli {

void become_whole_now() {}  // it is

}  // namespace penstock::cli
