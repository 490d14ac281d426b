// SPDX-License-Identifier: Apache-2.0
// The text form of a program, one line per op:
//
//   penstock program 1
//   name slimpipe
//   stages 2
//   slices 2,2
//   device 0
//   0 0F0.0
//   1 0SEND_F0.0 to 1 bytes 4096 after 0
//   2 1RECV_B0.1 from 1 bytes 4096 after 0
//   device 1
//   ...
//   exchange 1F1.1 on 1 by 0 during 0F2.0 halves 0+1 bytes 4096+1024
//
// A line is the op's number on its device, its token (PyTorch's where there is one: 0F1, 0SEND_F1, 1RECV_F1,
// 0SEND_B1, 0REDUCE_GRAD; ours: 0OFFLOAD1, 0RELOAD1, 0GATHER_WEIGHTS, STEP; slices follow a point, as in
// 0F1.2, when a micro-batch has several), and what it has of "to" / "from" / "with" a device, "over" a group
// of the mesh other than the pipeline, "bytes" and "after" ops. The exchanges (schedule/exchange.h) come
// after all devices: the owner's action and device, the partner and what it runs meanwhile, first half + how
// many, bytes of request + reply. Printing and parsing are inverse. Nothing read is trusted.
#pragma once

#include <string>
#include <string_view>

#include "schedule/program.h"

namespace penstock::schedule {

// "0SEND_F1.2", "STEP".
std::string to_token(const Op& op, bool with_slice);

std::string to_text(const Program& program);

// `origin` names the text in errors: "my.program: line 7: "0X1" is no op; expected ...". Throws InputError.
// Numbers are within the program's stages and slices, peers are devices of it, and ops wait only for earlier
// ones.
Program parse_program(std::string_view text, std::string_view origin);

}  // namespace penstock::schedule
