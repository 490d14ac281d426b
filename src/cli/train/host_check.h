// SPDX-License-Identifier: Apache-2.0
// Checks that a run's predicted memory is free on this host and on its GPUs.
#pragma once

#include <filesystem>
#include <optional>

#include "profile/host_memory.h"
#include "run/run.h"

namespace penstock::cli {

// Host memory of the `ranks` ranks that need most: tensors (unless on a GPU), offloaded records, checkpoint
// staging and copies of their states; and the copies that they keep for other hosts' ranks.
Bytes bytes_on_host(const run::Run& run, int ranks);

// Host memory available to a start that releases `copies` bytes of the memory in use.
Bytes free_on_host(const profile::HostMemory& memory, Bytes copies);

// Throws NoAnswer if these ranks need more than `free` bytes, with settings that would fit here and on the
// GPU that `on_gpu` of them share (0: no GPU). Does nothing under train.memory_check = "off".
void require_host_memory(const run::Run& run, int ranks, Bytes free, int on_gpu = 0);

// Bytes of the copies in train.buddy_dir that a host with the `ranks` ranks that need most keeps.
Bytes copies_on_host(const run::Run& run, int ranks);

// train.buddy_dir as an absolute path without a last separator.
std::filesystem::path folder_of_copies(const run::TrainOptions& train);

// Bytes free in the file system of train.buddy_dir, or of the folder that it will be made in, for a start
// that releases `copies` bytes there; empty if unknown or without a limit of its own.
std::optional<Bytes> free_for_copies(const run::TrainOptions& train, Bytes copies);

// Throws NoAnswer if the copies of these ranks need more than `free` bytes. Does nothing under
// train.memory_check = "off".
void require_room_for_copies(const run::Run& run, int ranks, std::optional<Bytes> free);

// Throws NoAnswer for the memory of this rank's GPU and the tensors of the `ranks` ranks that share it. Does
// nothing on the CPU, nor under train.memory_check = "off".
void require_gpu_memory(const run::Run& run, int ranks);

// The same for each GPU and its ranks, if all ranks are threads of this process, on its GPUs round-robin.
void require_gpu_of_threads(const run::Run& run);

// Bytes of the tensors of all ranks on `gpu`, if ranks take `gpus` GPUs round-robin.
Bytes bytes_on_gpu(const run::Run& run, int gpu, int gpus);

}  // namespace penstock::cli
