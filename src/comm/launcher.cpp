// SPDX-License-Identifier: Apache-2.0
#include "comm/launcher.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>

#include "base/process.h"
#include "base/text.h"

namespace penstock::comm {
namespace {

std::optional<int> variable(const char* name) {
  const char* value = std::getenv(name);
  const auto number = value ? parse_integer(value) : std::nullopt;
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// Returns the value of the first variable that is set.
int first_of(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const auto value = variable(name)) return *value;
  }
  return otherwise;
}

// Whether mpirun started the process as a rank or as a wrapper of a rank, such as a shell. Ignores Slurm's
// variables, which batch scripts that run mpirun also have.
bool belongs_to_rank(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  for (std::string entry; std::getline(file, entry, '\0');) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name == "OMPI_COMM_WORLD_RANK" || name == "PMI_RANK") return true;
  }
  return false;
}

// SLURM_PROCID alone is also set in batch scripts, which are not ranks.
bool launched_by_srun() {
  return variable("SLURM_PROCID") && variable("SLURM_STEP_NUM_TASKS").value_or(1) > 1;
}

bool launched_by_mpirun() {
  return variable("OMPI_COMM_WORLD_SIZE") || variable("PMI_SIZE") || variable("PMIX_RANK");
}

}  // namespace

bool launched_by_mpi() { return launched_by_mpirun() || launched_by_srun(); }

int launched_rank() {
  if (!launched_by_mpi()) return 0;
  return first_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}, 0);
}

int launched_ranks() {
  if (!launched_by_mpi()) return 1;
  return first_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int launched_local_ranks() {
  if (!launched_by_mpi()) return 1;
  return first_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 1);
}

int launched_local_rank() {
  if (!launched_by_mpi()) return 0;
  return first_of({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, launched_rank());
}

int usable_processors(int process) {
  constexpr int kMost = 1 << 20;
  for (int room = CPU_SETSIZE; room <= kMost; room *= 2) {  // a set of fewer than the host's is refused
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(room),
                                                               [](cpu_set_t* p) { CPU_FREE(p); });
    const std::size_t bytes = CPU_ALLOC_SIZE(room);
    if (set && sched_getaffinity(process, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
    if (errno != EINVAL) return 0;
  }
  return 0;
}

int usable_by_launcher() {
  const int usable = usable_processors();
  if (!launched_by_mpi()) return usable;
  pid_t launcher = getppid();
  while (launcher > 1 && belongs_to_rank(launcher)) launcher = parent_of(launcher);
  return std::max(usable, usable_processors(launcher));
}

int processors_of_rank(int ranks_here) {
  return std::max(1, std::min(usable_processors(), usable_by_launcher() / std::max(1, ranks_here)));
}

void prefer_shared_memory() {
  if (launched_ranks() == launched_local_ranks()) ::setenv("OMPI_MCA_pml", "ob1", 0);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

std::string host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string started;
  file >> started;
  return host_name() + (started.empty() ? "" : "-" + started);
}

}  // namespace penstock::comm
