// SPDX-License-Identifier: Apache-2.0
// Every generator, defined in the file of its name. Each takes a request that generate() has checked (p, m, n
// and v positive, v and n within what its line in generator.cpp says) and refuses the rest itself.
#pragma once

#include "schedule/generators/generator.h"

namespace penstock::schedule {

Schedule gpipe(const Request& request);
Schedule terapipe(const Request& request);
Schedule one_f_one_b(const Request& request);
Schedule seq1f1b(const Request& request);
Schedule interleaved(const Request& request);
Schedule seq1f1b_interleaved(const Request& request);
Schedule breadth_first(const Request& request);
Schedule slimpipe(const Request& request);
Schedule zb_h1(const Request& request);
Schedule zb_h2(const Request& request);
Schedule zb_v(const Request& request);
Schedule v_half(const Request& request);
Schedule v_min(const Request& request);
Schedule dualpipe(const Request& request);
Schedule dualpipe_v(const Request& request);

}  // namespace penstock::schedule
