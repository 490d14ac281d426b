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
// A line has the op's index on its device, its token (PyTorch's where one exists: 0F1, 0SEND_F1, 1RECV_F1,
// 0SEND_B1, 0REDUCE_GRAD; ours: 0OFFLOAD1, 0RELOAD1, 0GATHER_WEIGHTS, STEP; a slice number follows a point,
// as in 0F1.2, if a micro-batch has several slices) and its optional fields: "to" / "from" / "with" a device,
// "over" a mesh group other than the pipeline, "bytes" and "after" ops. The exchanges (schedule/exchange.h)
// follow all devices: the owner's action and device, the partner and its own action in that slot, first half
// + number of halves, request + reply bytes. Printing and parsing are inverse. Input is not trusted.
#pragma once

#include <string>
#include <string_view>

#include "schedule/program.h"

namespace penstock::schedule {

// "0SEND_F1.2", "STEP".
std::string to_token(const Op& op, bool with_slice);

std::string to_text(const Program& program);

// `origin` names the text in errors: "my.program: line 7: "0X1" is no op; expected ...". Throws InputError.
// In the result, numbers are within the program's stages and slices, peers exist, and ops wait only for
// earlier ops.
Program parse_program(std::string_view text, std::string_view origin);

}  // namespace penstock::schedule
