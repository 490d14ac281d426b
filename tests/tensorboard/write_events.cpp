// SPDX-License-Identifier: Apache-2.0
// Writes the event files of a run and of the run that went on from its third step (read_curves.py).
#include "files/event_file.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto write = [&](std::int64_t last_step, std::int64_t from, std::int64_t to, double above) {
    penstock::files::EventFile file(argv[1], last_step);
    for (std::int64_t step = from; step <= to; ++step) {
      const penstock::files::NamedNumber numbers[] = {
          {"train/loss", above + 1.0 / static_cast<double>(step)},
          {"speed/tokens_per_second", 1000.0 * static_cast<double>(step)}};
      file.write(step, numbers);
    }
  };
  write(0, 1, 5, 0);
  write(3, 4, 6, 10);
  return 0;
}
