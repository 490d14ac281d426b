// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/speeds.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <system_error>

#include "backend/device.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/automatic_threads.h"
#include "cli/device_program.h"
#include "cli/profile/measure.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "comm/mpi.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/file_system.h"
#include "files/mapped_file.h"
#include "profile/doubts.h"
#include "run/hardware_file.h"
#include "run/resolve/resolve.h"
#include "run/settle.h"
#include "train/machine.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestProfile = 1 << 20;

std::string cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/penstock";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/penstock";
  return {};
}

// Identifies the build, since kernels may differ between builds.
std::string build_of_program() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const auto written = fs::last_write_time(program, ignored).time_since_epoch().count();
  return std::to_string(fs::file_size(program, ignored)) + " bytes of " + std::to_string(written);
}

std::string words_of(const ProfileKey& key) {
  return counted(key.ranks, "rank") + " of " + counted(key.threads, "thread") + " in " +
         std::string(name_of(key.precision)) +
         (key.elsewhere > 0 ? ", with " + counted(key.elsewhere, "rank") + " of other hosts" : "");
}

Speeds speeds_in(const std::string& text, const std::string& origin) {
  run::HardwareFile file = run::parse_hardware_text(text, origin);
  return {file.hardware, origin, std::move(file.assumed)};
}

// Empty if there is no cache folder.
std::string profile_path(const ProfileKey& key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  const train::Host host = train::this_host();
  const std::optional<backend::Gpu> gpu = backend::gpu();
  const std::string facts = (gpu ? gpu->name + "\n" : "") + host.processor + "\n" + host.instructions + "\n" +
                            std::to_string(host.cores) + "\n" + words_of(key) + "\n" + build_of_program();
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(files::checksum(std::as_bytes(std::span(facts)))));
  return folder + "/machine-" + hash + ".toml";
}

bool is_file(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::is_regular_file(path, error);
}

// Throws for one that cannot be read.
std::string read_profile(const std::string& path) {
  std::string text = files::read_text(path, kLongestProfile);
  run::parse_hardware_text(text, path);
  return text;
}

// Returns the kept profile; empty if there is none that can be read.
std::string kept(const std::string& path) try {
  return is_file(path) ? read_profile(path) : std::string();
} catch (const std::exception& failure) {
  tell_remark(std::string(failure.what()) + "; it is measured again");
  return {};
}

// Whether the profile at the path is one without doubts.
bool is_sound(const std::string& path) try {
  return is_file(path) && profile::doubts_about(read_profile(path)).empty();
} catch (const std::exception&) {  // it is written over
  return false;
}

Speeds assumed_speeds() {
  Speeds speeds;
  speeds.origin = "assumed, not measured";
  speeds.assumed = {"products at 100 GFLOP/s", "attention at 50 GFLOP/s", "messages at 5 GB/s",
                    "offloading at 2 GB/s"};
  return speeds;
}

Speeds speeds_in_file(const std::string& name) {
  const std::string path = run::find_hardware_file(name, ".");
  run::HardwareFile file = run::read_hardware_file(path);
  return {file.hardware, path, std::move(file.assumed)};
}

void announce(const ProfileKey& key) {
  std::cerr << "profile   measuring this machine once, for " + words_of(key) + ", in less than a minute\n"
            << std::flush;
}

std::string origin_of(const ProfileKey& key, const std::string& text) {
  return "measured on this machine for " + words_of(key) + std::string(profile::doubts_about(text));
}

// The folder to which the run offloads, or the next one above that there is.
std::string disk_folder_of(const run::Options& options) {
  std::error_code error;
  fs::path folder = fs::absolute(
      options.memory.offload_dir.empty() ? options.output.dir : options.memory.offload_dir, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder.string();
}

MeasureOptions quick_profile(const ProfileKey& key, const run::Options& options) {
  return {.precision = key.precision,
          .quick = true,
          .threads = key.threads,
          .disk_folder = disk_folder_of(options)};
}

// f64 uses the rates of f32.
model::Precision measured_precision(const run::Options& options) {
  return options.train.precision == "bf16" ? model::Precision::BF16 : model::Precision::F32;
}

// `here`: ranks of the run that work on one host.
ProfileKey key_of(const run::Options& options, int here) {
  const int threads =
      options.train.threads > 0 ? static_cast<int>(options.train.threads) : automatic_threads(here);
  return {.precision = measured_precision(options), .ranks = here, .threads = threads};
}

int ranks_of(const run::Options& options) { return static_cast<int>(run::mesh_of(options).world()); }

// Speeds of links and networks: a run of one rank neither uses nor measures them.
bool is_of_messages(const std::string& speed) {
  return speed.starts_with("node.link_") || speed.starts_with("network.");
}

// Measures as if all ranks of the run were on this host.
Speeds measured_speeds(const run::Options& options) {
  ProfileKey key = key_of(options, ranks_of(options));
  key.ranks = with_cores(key.ranks, key.threads);
  std::string text = kept(profile_path(key));
  if (text.empty()) {
    run::require_possible(options);
    announce(key);
    text = measured_here(quick_profile(key, options), key.ranks, [](const std::string&) {});
    keep_profile(key, text);
  }
  Speeds speeds = speeds_in(text, origin_of(key, text));
  if (ranks_of(options) == 1) std::erase_if(speeds.assumed, is_of_messages);
  return speeds;
}

// Tables that a file has only in its own precision (sim/costs/analytic.h).
bool has_other_tables(const sim::Measured& measured) {
  return !measured.attention_tokens.empty() || !measured.elementwise_mb.empty() ||
         measured.optimizer_gbps > 0;
}

}  // namespace

std::string described(const Speeds& speeds) {
  if (speeds.assumed.empty()) return speeds.origin;
  return speeds.origin + "; assumed: " + join(speeds.assumed, ", ");
}

std::string to_json(const Speeds& speeds) {
  return "{\"origin\":" + json_quote(speeds.origin) + ",\"assumed\":" + json_quote_all(speeds.assumed) + "}";
}

int with_cores(int ranks, int threads) {
  const std::optional<backend::Gpu> gpu = backend::gpu();
  return std::clamp(gpu ? gpu->gpus : comm::usable_by_launcher() / threads, 1, ranks);
}

std::string keep_profile(const ProfileKey& key, const std::string& text) {
  const std::string path = profile_path(key);
  if (path.empty()) {
    tell_remark("the profile is not kept: neither XDG_CACHE_HOME nor HOME names a folder");
    return {};
  }
  if (!profile::doubts_about(text).empty() && is_sound(path)) {
    tell_remark("the profile is not kept: " + path + " has a better one");
    return {};
  }
  try {
    const std::string folder = fs::path(path).parent_path().string();
    if (files::make_directories(folder) != 0) files::fail_to("cannot be made", folder);
    files::write_atomically(path, text);
    return path;
  } catch (const std::exception& failure) {
    tell_remark(std::string(failure.what()) + "; the profile is not kept");
    return {};
  }
}

Speeds speeds_of(const std::string& flag, const run::Options& options) {
  if (flag.empty()) {
    become_program_for_gpus(options.train.device);
    backend::require_device();
    require(options.train.device != "cuda" || backend::gpu(),
            "train.device = \"cuda\": this program measures the CPU's speeds alone; ask plan, simulate or "
            "data with --hardware h200, or set train.device = \"cpu\"");
  }
  Speeds speeds = flag == kAssumed ? assumed_speeds()
                  : flag.empty()   ? measured_speeds(options)
                                   : speeds_in_file(flag);
  const std::string taken(name_of(measured_precision(options)));
  const std::string own = speeds.hardware.device.peak;
  if (taken != own && has_other_tables(speeds.hardware.measured))
    speeds.assumed.push_back("attention, norms and optimizer in " + taken + " as measured in " + own);
  if (options.train.precision == "f64") speeds.assumed.emplace_back("f64 as fast as f32");
  if (speeds.hardware.device.backend == "cuda" && !speeds.hardware.measured.attention_tokens.empty() &&
      !options.numerics.repeatable)
    speeds.assumed.emplace_back("non-deterministic attention backward as fast as the repeatable one");
  return speeds;
}

Speeds speeds_together(const run::Options& options, comm::Communicator& world) {
  const int all = ranks_of(options), here = std::min(all, comm::local_ranks());
  ProfileKey key = key_of(options, here);
  key.elsewhere = all - here;
  std::string text;
  if (world.rank() == 0) text = kept(profile_path(key));
  text = comm::broadcast_text(text, 0, world);
  if (text.empty()) {
    if (world.rank() == 0) announce(key);
    text = measured_as_rank(quick_profile(key, options), world, "processes of mpirun",
                            [](const std::string&) {});
    if (world.rank() == 0) keep_profile(key, text);
    text = comm::broadcast_text(text, 0, world);
  }
  return speeds_in(text, origin_of(key, text));
}

}  // namespace penstock::cli
