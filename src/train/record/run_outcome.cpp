// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_outcome.h"

#include "files/atomic_file.h"
#include "files/run_files.h"
#include "schedule/program_text.h"

namespace penstock::train {

void write_records(const RunOutcome& outcome, const run::Run& run, const RunDirectory& directory,
                   const std::function<void()>& after_file) {
  const auto write = [&](const std::string& path, const std::string& text) {
    files::write_atomically(path, text);
    after_file();
  };
  if (!outcome.timelines.empty()) {
    write(directory.file(files::kProgram), schedule::to_text(outcome.program.value_or(run.program)));
    write(directory.timeline(), to_json(outcome.timelines));
    if (outcome.documents) write(directory.file(files::kDocuments), to_json(*outcome.documents));
    if (!outcome.profiles.empty()) write(directory.file(files::kProfile), to_json(outcome.profiles));
  }
  write(directory.summary(), to_json(outcome.summary));
}

}  // namespace penstock::train
