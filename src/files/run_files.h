// SPDX-License-Identifier: Apache-2.0
// File names of a run directory (docs/files.md describes each).
#pragma once

#include <cstddef>

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

// Suffixes.
inline constexpr const char* kDamaged = ".damaged";  // a file or checkpoint that a resumed run set aside
inline constexpr const char* kPartial = ".partial";  // a checkpoint that is being written or removed

inline constexpr std::size_t kLongestRecord = std::size_t{1} << 32;  // bytes of a file that is read whole

}  // namespace penstock::files
