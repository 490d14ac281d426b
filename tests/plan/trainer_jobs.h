// SPDX-License-Identifier: Apache-2.0
// Questions about other trainers, and their jobs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/plan_print.h"
#include "plan/question.h"
#include "plan/trainers/job.h"
#include "plan/trainers/settings.h"

namespace penstock::plan {

inline constexpr int kAskedGpus = 64;

inline Question question_of(const std::string& engine, std::vector<std::string> more = {}) {
  std::filesystem::current_path(PENSTOCK_SOURCE_DIR);
  std::vector<std::string> words{"--model.name=llama3-70b", "--cluster.gpus=64",
                                 "--workload.seq_len=8192", "--workload.global_batch=128",
                                 "--cluster.hardware=h100", "--cluster.engine=" + engine};
  words.insert(words.end(), more.begin(), more.end());
  return read_question("", words);
}

// Settings as text, read as a job.
inline Job job_of(const Question& question, const Layout& layout) {
  Candidate candidate;
  candidate.layout = layout;
  const std::string text =
      print_settings(*question.cluster.trainer, {question.workload, question.cluster, {}}, candidate);
  const PlanOptions::ClusterKeys& cluster = question.options.cluster;
  Today today{.origin = "job.toml", .gpus = cluster.gpus, .hardware = cluster.hardware};
  today.limit = question.options.memory.limit;
  (cluster.engine == "megatron" ? today.megatron : today.torchtitan) = text;
  return Job(today);
}

}  // namespace penstock::plan
