// SPDX-License-Identifier: Apache-2.0
// A configuration of another trainer as its user wrote it. It can be read again with other settings, so that
// what is said of a change is what the trainer would make of it: rounded layers, defaults that depend on
// other settings, settings without effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/trainers/beyond.h"
#include "plan/trainers/megatron_arguments.h"
#include "plan/trainers/settings.h"

namespace penstock::plan {

struct Today {
  std::string megatron;            // arguments; if empty, uses `torchtitan`
  std::string torchtitan, origin;  // text of a job file, and its name in errors
  std::int64_t gpus = 0;
  std::string hardware = "h100", limit;
};

// Settings in place of a job's own.
struct Edit {
  Settings set;
  std::vector<std::string> left_out;  // names
};

class Job {
 public:
  // Throws InputError like read_megatron and read_torchtitan, and for an impossible layout.
  explicit Job(const Today& today);

  const Question& question() const { return question_; }
  const Layout& layout() const { return layout_; }
  const Words& not_counted() const { return not_counted_; }
  const Trainer& trainer() const { return *question_.cluster.trainer; }

  struct Read {
    Workload workload;
    sim::Engine engine;
    Layout layout;
    friend bool operator==(const Read& a, const Read& b) {
      return a.workload.global_batch == b.workload.global_batch && a.engine == b.engine &&
             a.layout == b.layout;
    }
  };
  // Throws InputError likewise.
  Read with(const Edit& edit) const;

  // What to change so that the job has this layout and the same global batch; settings without effect may be
  // among it.
  Edit edit_to(const Layout& layout) const;

  // Edits that may have the trainer do the same work in less time, shortest first: compiled elementwise work,
  // grouped products of experts.
  std::vector<Edit> engine_edits() const;

  // The edit without what has no effect on how the job is read.
  Edit shortest(Edit edit) const;

  // In the trainer's words: "--tensor-model-parallel-size 4, without --recompute-granularity".
  std::string text_of(const Edit& edit) const;

 private:
  struct Asked {
    PlanOptions options;
    Beyond beyond;
  };
  Asked read(const Edit& edit) const;
  // The value in the job's text, if it is there.
  std::optional<std::string> own(const std::string& name) const;

  PlanOptions cluster_;  // with the keys of the cluster alone
  std::optional<MegatronArguments> megatron_;
  std::vector<GivenValue> torchtitan_;
  std::string origin_;
  Question question_;
  sim::Engine engine_;  // without the job's own settings
  Layout layout_;
  Words not_counted_;
  Settings settings_;  // of layout_
};

}  // namespace penstock::plan
