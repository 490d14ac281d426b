// SPDX-License-Identifier: Apache-2.0
// Ranks with one GPU each. NCCL moves messages in GPU memory; another communicator moves all others and
// failures.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/gpus/nccl.h"

namespace penstock::comm {

// `control` outlives the result and is used only through it. Collective. Sub-groups use NCCL too. Groups are
// connected before their first message in GPU memory. Such a message is sent by any test or wait of its
// sender and is done when the GPU has moved it; until then it shows progress only while this rank's GPU is
// at earlier work.
std::unique_ptr<Communicator> make_gpu_ranks(Communicator& control, const Nccl& nccl);

}  // namespace penstock::comm
