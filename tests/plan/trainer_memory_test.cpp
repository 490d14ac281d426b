// SPDX-License-Identifier: Apache-2.0
// Memory of other trainers where their code holds more, or less, than ours.
#include <gtest/gtest.h>

#include <filesystem>

#include "plan/answer.h"
#include "plan/trainers/job.h"

namespace penstock::plan {
namespace {

model::MemoryPeaks memory_of_job(const Today& today) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  const Job job(today);
  return answer_for_layout(job.question(), job.layout()).result.best.front().memory.fullest;
}

struct PublishedRun {
  const char* description;
  std::int64_t gpus;
  std::string keys;
  double gib;  // reserved by PyTorch's allocator
};

// torchtitan's benchmarks/llama3_h100_202412_torchtitan.md: Llama 3.1 8B, and 70B over eight tensor ranks.
// Some of these runs computed products in float8, which changed the memory of table 1 by less than 1 %.
TEST(TrainerMemory, OfTorchtitanIsWithinWhatItsRunsReserved) {
  const std::string selective =
      "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n";
  const std::string full = "[activation_checkpoint]\nmode = \"full\"\n[compile]\nenable = true\n";
  const auto training = [](int batch, int tokens) {
    return "[training]\nlocal_batch_size = " + std::to_string(batch) +
           "\nseq_len = " + std::to_string(tokens) + "\n";
  };
  const auto context = [](int ranks) {
    return "[parallelism]\ncontext_parallel_degree = " + std::to_string(ranks) + "\n";
  };
  const PublishedRun runs[] = {
      {"8 GPUs", 8, training(2, 8192) + selective, 82.4},
      {"8 GPUs, compiled", 8, training(2, 8192) + selective + "[compile]\nenable = true\n", 77.0},
      {"128 GPUs", 128, training(2, 8192) + selective, 67.0},
      {"32K", 8, training(1, 32768) + full, 83.9},
      {"64K", 8, training(1, 65536) + full + context(2), 84.2},
      {"128K", 8, training(1, 131072) + full + context(4), 84.0},
      {"256K", 8, training(1, 262144) + full + context(8), 84.5},
      {"70B", 256, training(16, 8192) + full + "[parallelism]\ntensor_parallel_degree = 8\n", 71.9}};
  const double reserved = find_trainer("torchtitan")->reserved;
  for (const PublishedRun& run : runs) {
    const bool large = std::string(run.description) == "70B";
    const std::string flavor = large ? "70B" : "8B";
    const model::MemoryPeaks memory =
        memory_of_job({.torchtitan = "[model]\nname = \"llama3\"\nflavor = \"" + flavor + "\"\n" + run.keys,
                       .origin = "job.toml",
                       .gpus = run.gpus});
    const double share = as_double(memory.total()) / (run.gib * as_double(GiB));
    EXPECT_GT(share, large ? 1 / reserved : 6.0 / 7) << run.description;
    EXPECT_LT(share, 1) << run.description;
  }
}

TEST(TrainerMemory, OfTorchtitanHasFourArraysOfLogitsOverTensorRanks) {
  for (const int tensor : {1, 2, 8}) {
    const model::MemoryPeaks memory = memory_of_job(
        {.torchtitan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = "
                       "2\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = " +
                       std::to_string(tensor),
         .origin = "job.toml",
         .gpus = 64});
    const Bytes logits = 2LL * 8192 * 128256 / tensor, whole_input = 2LL * 8192 * 4096 * 2;
    EXPECT_EQ(memory.logits, tensor > 1 ? 16 * logits + whole_input : 12 * logits) << tensor;
  }
}

// Arguments of a Llama 3 8B with one layer recomputed at a time.
std::string arguments(int micro_batch, int tensor, const std::string& more) {
  return "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
         "--group-query-attention --num-query-groups 8 --swiglu --vocab-size 128256 --seq-length 8192 --bf16 "
         "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform "
         "--recompute-num-layers 1 --global-batch-size 64 --micro-batch-size " +
         std::to_string(micro_batch) + " --tensor-model-parallel-size " + std::to_string(tensor) + more;
}

constexpr std::int64_t kEight = 8;

TEST(TrainerMemory, OfMegatronHasALogitInBf16AndF32AndItsGradient) {
  for (const int tensor : {1, 2, 4}) {
    for (const int micro_batch : {1, 2, 4}) {
      const std::string sequence = tensor > 1 ? " --sequence-parallel" : "";
      const model::MemoryPeaks memory = memory_of_job(
          {.megatron = arguments(micro_batch, tensor, sequence + " --untie-embeddings-and-output-weights"),
           .gpus = kEight});
      EXPECT_EQ(memory.logits, 8LL * micro_batch * 8192 * 128256 / tensor);
      EXPECT_EQ(memory.transient, 0) << "a layer's backward needs less, and comes after";
    }
  }
}

TEST(TrainerMemory, OfMegatronHasOneGradientOfTiedEmbeddings) {
  const Bytes tied = memory_of_job({.megatron = arguments(1, 1, ""), .gpus = kEight}).gradients;
  const Bytes untied =
      memory_of_job({.megatron = arguments(1, 1, " --untie-embeddings-and-output-weights"), .gpus = kEight})
          .gradients;
  EXPECT_EQ(untied - tied, 4LL * 128256 * 4096);
}

// Our own bf16 scores that are added in order would be 2·b·heads·tokens² bytes.
TEST(TrainerMemory, OfMegatronHasNoOrderedSumsOfAttention) {
  const model::MemoryPeaks memory =
      memory_of_job({.megatron = arguments(1, 1,
                                           " --pipeline-model-parallel-size 4 "
                                           "--untie-embeddings-and-output-weights"),
                     .gpus = kEight});
  EXPECT_GT(memory.transient + memory.logits, 0);
  EXPECT_LT(memory.transient, 2LL * 32 * 8192 * 8192);
}

}  // namespace
}  // namespace penstock::plan
