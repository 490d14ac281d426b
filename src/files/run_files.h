// SPDX-License-Identifier: Apache-2.0
// The files of a run directory (docs/files.md describes each).
#pragma once

#include <array>
#include <cstddef>
#include <ranges>

namespace penstock::files {

inline constexpr const char* kRunFile = "run.toml";             // the resolved run file
inline constexpr const char* kSchedule = "schedule.csv";        // for runs with schedule.file
inline constexpr const char* kMetrics = "metrics.jsonl";        // one line per step
inline constexpr const char* kSummary = "summary.json";         // of the whole run
inline constexpr const char* kWeights = "weights.safetensors";  // the trained model
inline constexpr const char* kCheckpoints = "checkpoints";      // a directory
inline constexpr const char* kProfile = "profile.json";         // kernel calls of the last steps
inline constexpr const char* kProgram = "program.txt";
inline constexpr const char* kDocuments = "documents.json";
inline constexpr const char* kTimeline = "timeline.json";
inline constexpr const char* kTrace = "trace.json";
inline constexpr const char* kReport = "report.html";
inline constexpr const char* kNumber = "number";     // the run's number, which its copies in memory bear
inline constexpr const char* kStopRequest = "stop";  // created by a user: ends the run after its step
inline constexpr const char* kAttempts = "attempts.json";  // for supervised runs
inline constexpr const char* kWhereRequest = "where";      // created by a user: asks every rank where it is
inline constexpr const char* kPositions = "positions";     // a directory of answers, until they are collected
inline constexpr const char* kPositionsText = "positions.txt";  // the collected answers to the last request
inline constexpr const char* kToken = "token";  // "token-3" of rank 3: do all see one directory?
inline constexpr const char* kLock = "lock";    // held while a run uses the directory

// What the program does with an entry of a run directory, besides writing it.
struct RunEntry {
  const char* name;
  bool folder = false;
  bool listed = false;  // named at the end of a run
  bool read = false;    // by commands that are given the directory
  bool locked = false;  // written only by the holder of the lock, through a ".part-" file
  bool ending = false;  // of a run's end; outdated once the run goes on
};

// In the order of messages. "token-3" is missing: it has no fixed name.
inline constexpr std::array<RunEntry, 19> kRunEntries{{
    {.name = kRunFile, .listed = true, .read = true, .locked = true},
    {.name = kSchedule, .listed = true, .read = true, .locked = true},
    {.name = kMetrics, .listed = true, .read = true, .locked = true},
    {.name = kSummary, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kWeights, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kCheckpoints, .folder = true, .listed = true},
    {.name = kProfile, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kProgram, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kDocuments, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kTimeline, .listed = true, .read = true, .locked = true, .ending = true},
    {.name = kTrace, .listed = true, .ending = true},
    {.name = kReport, .ending = true},
    {.name = kNumber, .locked = true},
    {.name = kStopRequest},
    {.name = kAttempts, .read = true},
    {.name = kWhereRequest},
    {.name = kPositions, .folder = true},
    {.name = kPositionsText},
    {.name = kLock},
}};

// The entries of one kind: entries_that(&RunEntry::read).
constexpr auto entries_that(bool RunEntry::*are) {
  return kRunEntries | std::views::filter(are) | std::views::transform(&RunEntry::name);
}

// Suffixes.
inline constexpr const char* kDamaged = ".damaged";  // a file or checkpoint that a resumed run set aside
inline constexpr const char* kPartial = ".partial";  // a checkpoint that is being written or removed

inline constexpr std::size_t kLongestRecord = std::size_t{1} << 32;  // bytes of a file that is read whole

}  // namespace penstock::files
