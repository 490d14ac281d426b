// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/columns.h"
#include "base/text.h"
#include "plan/published/score.h"

namespace penstock::plan {
namespace {

std::string figure_text(double value) { return number(value, std::abs(value) < 1000 ? 2 : 0); }

std::string error_text(const Score& score, const ScoredFigure& figure) {
  if (score.error_kind == ErrorKind::Absolute) return number(figure.error(), 3);
  return number(100 * figure.relative_error(), 2) + " %";
}

// For tables with many parts per row, the worst part of each row.
std::vector<ScoredFigure> shown_figures(const Score& score) {
  if (score.error_kind == ErrorKind::Relative) return score.figures;
  std::vector<ScoredFigure> worst;
  for (const ScoredFigure& figure : score.figures) {
    if (worst.empty() || worst.back().row != figure.row) {
      worst.push_back(figure);
    } else if (std::abs(figure.error()) > std::abs(worst.back().error())) {
      worst.back() = figure;
    }
  }
  return worst;
}

std::string statistic_text(const Score& score, double value) {
  return score.error_kind == ErrorKind::Absolute ? number(value, 4) : number(100 * value, 2) + " %";
}

std::string json_figure(const ScoredFigure& figure) {
  return "{\"row\":" + std::to_string(figure.row + 1) + ",\"model\":" + json_quote(figure.model) +
         ",\"setting\":" + json_quote(figure.setting) + ",\"quantity\":" + json_quote(figure.quantity) +
         ",\"predicted\":" + exact_number(figure.predicted) +
         ",\"published\":" + exact_number(figure.published) + ",\"error\":" + exact_number(figure.error()) +
         ",\"relative_error\":" + exact_number(figure.relative_error()) +
         (figure.engine.empty()
              ? ""
              : ",\"engine\":" + json_quote(figure.engine) + ",\"hardware\":" + json_quote(figure.hardware) +
                    ",\"family\":" + json_quote(figure.family)) +
         "}";
}

std::string json_refused(const RefusedRow& row) {
  return "{\"row\":" + std::to_string(row.row + 1) + ",\"model\":" + json_quote(row.setting) +
         ",\"reason\":" + json_quote(row.reason) + "}";
}

std::string json_errors(const ErrorStatistics& errors) {
  if (errors.count == 0) return R"({"count":0,"mean":null,"median":null,"p90":null,"greatest":null})";
  return "{\"count\":" + std::to_string(errors.count) + ",\"mean\":" + exact_number(errors.mean) +
         ",\"median\":" + exact_number(errors.median) + ",\"p90\":" + exact_number(errors.p90) +
         ",\"greatest\":" + exact_number(errors.greatest) + "}";
}

// Errors of rows of one engine, hardware or family.
using Kinds = std::map<std::string, std::vector<double>>;
Kinds kinds_of(const Score& score, std::string ScoredFigure::*kind) {
  Kinds kinds;
  for (const ScoredFigure& figure : score.figures) {
    if (!(figure.*kind).empty()) kinds[figure.*kind].push_back(std::abs(figure.relative_error()));
  }
  return kinds;
}

struct KindOfRow {
  const char* name;
  std::string ScoredFigure::*kind;
};
constexpr KindOfRow kKindsOfRows[]{{"engine", &ScoredFigure::engine},
                                   {"hardware", &ScoredFigure::hardware},
                                   {"family", &ScoredFigure::family}};

std::string print_score_kinds(const Score& score) {
  Rows rows;
  for (const auto& [name, kind] : kKindsOfRows) {
    for (const auto& [value, errors] : kinds_of(score, kind)) {
      const ErrorStatistics found = statistics_of(errors);
      rows.push_back({name, value, std::to_string(found.count) + (found.count == 1 ? " row," : " rows,"),
                      "median " + statistic_text(score, found.median) + ",",
                      "mean " + statistic_text(score, found.mean) + ",",
                      "p90 " + statistic_text(score, found.p90)});
    }
  }
  return rows.empty() ? "" : columns(rows, "llrlll");
}

std::string print_errors(const Score& score) {
  if (score.figures.empty()) return "no figure is scored\n";
  const ErrorStatistics errors = statistics_of(score);
  return std::to_string(errors.count) + " figures, absolute " +
         (score.error_kind == ErrorKind::Relative ? "relative " : "") + "error: mean " +
         statistic_text(score, errors.mean) + ", median " + statistic_text(score, errors.median) + ", p90 " +
         statistic_text(score, errors.p90) + ", greatest " + statistic_text(score, errors.greatest) + "\n";
}

std::string print_ranking(const Ranking& ranking) {
  if (ranking.pairs == 0) return "";
  const auto share = [](std::size_t part, std::size_t all) {
    return std::to_string(part) + " of " + std::to_string(all) + " (" +
           number(100.0 * static_cast<double>(part) / static_cast<double>(all), 1) + " %)";
  };
  std::string text =
      "pairs of one model, hardware and number of GPUs whose speeds differ by more than 5 %: " +
      share(ranking.right, ranking.pairs) + " in the published order\n";
  if (ranking.groups > 0)
    text += "groups of four rows and more: the published best is among our first three in " +
            share(ranking.in_three, ranking.groups) + "\n";
  return text;
}

std::string json_kinds(const Score& score) {
  std::vector<std::string> all;
  for (const auto& [name, kind] : kKindsOfRows) {
    std::vector<std::string> values;
    for (const auto& [value, errors] : kinds_of(score, kind))
      values.push_back(json_quote(value) + ":" + json_errors(statistics_of(errors)));
    if (!values.empty()) all.push_back(json_quote(name) + ":{" + join(values, ",") + "}");
  }
  return "{" + join(all, ",") + "}";
}

std::string json_ranking(const Ranking& ranking) {
  return "{\"pairs\":" + std::to_string(ranking.pairs) + ",\"right\":" + std::to_string(ranking.right) +
         ",\"groups\":" + std::to_string(ranking.groups) +
         ",\"best_in_three\":" + std::to_string(ranking.in_three) + "}";
}

std::string json_out_of_memory(const ScoredOutOfMemory& row) {
  return "{\"row\":" + std::to_string(row.row + 1) + ",\"setting\":" + json_quote(row.setting) +
         ",\"predicted_bytes\":" + number(row.predicted_bytes, 0) +
         ",\"predicted_to_fit\":" + (row.predicted_to_fit ? "true" : "false") + "}";
}

}  // namespace

std::string print_score(const Score& score) {
  Rows rows{{"row", "model", "setting", "quantity", "predicted", "published", "error"}}, out_of_memory;
  for (const ScoredFigure& figure : shown_figures(score)) {
    rows.push_back({std::to_string(figure.row + 1), figure.model, figure.setting, figure.quantity,
                    figure_text(figure.predicted), figure_text(figure.published), error_text(score, figure)});
  }
  for (const ScoredOutOfMemory& row : score.out_of_memory) {
    out_of_memory.push_back(
        {std::to_string(row.row + 1), row.setting, "predicted", number(row.predicted_bytes / 1e9, 1) + " GB,",
         std::string(row.predicted_to_fit ? "fits" : "does not fit") + "; published: out of memory"});
  }
  std::string text = score.kind + "\n" + columns(rows, "rlllr") + columns(out_of_memory, "rllrl");
  text += print_errors(score);
  text += print_score_kinds(score) + print_ranking(ranking_of(score));
  for (const auto& [model, correlation] : rank_correlations(score)) {
    text += "rank correlation " + model + ": " + number(correlation, 4) + "\n";
  }
  if (score.kind == "throughput" && !score.figures.empty()) {
    const std::size_t all = score.figures.size();
    text += "memory, by formulas alone: " + std::to_string(all - score.does_not_fit.size()) + " of " +
            std::to_string(all) + " runs, all of which ran, are predicted to fit their GPUs\n";
  }
  for (const ScoredOutOfMemory& row : score.does_not_fit) {
    text += "ran, and is predicted to need " + number(row.predicted_bytes / 1e9, 1) + " GB: row " +
            std::to_string(row.row + 1) + ", " + row.setting + "\n";
  }
  for (const RefusedRow& row : score.refused) {
    text += "not scored: row " + std::to_string(row.row + 1) + ", " + row.setting + ": " + row.reason + "\n";
  }
  for (const std::string& note : score.notes) text += "note: " + note + "\n";
  return text;
}

std::string print_score_json(const Score& score) {
  const ErrorStatistics errors = statistics_of(score);
  const bool relative = score.error_kind == ErrorKind::Relative;
  std::vector<std::string> figures, out_of_memory, does_not_fit, refused, correlations, notes;
  for (const ScoredFigure& figure : score.figures) figures.push_back(json_figure(figure));
  for (const ScoredOutOfMemory& row : score.out_of_memory) out_of_memory.push_back(json_out_of_memory(row));
  for (const auto& [model, value] : rank_correlations(score)) {
    correlations.push_back(json_quote(model) + ":" + exact_number(value));
  }
  for (const std::string& note : score.notes) notes.push_back(json_quote(note));
  for (const ScoredOutOfMemory& row : score.does_not_fit) does_not_fit.push_back(json_out_of_memory(row));
  for (const RefusedRow& row : score.refused) refused.push_back(json_refused(row));
  return "{\"kind\":" + json_quote(score.kind) +
         ",\"error_kind\":" + (relative ? "\"relative\"" : "\"absolute\"") + ",\"rows\":[" +
         join(figures, ",") + "],\"out_of_memory\":[" + join(out_of_memory, ",") + "],\"does_not_fit\":[" +
         join(does_not_fit, ",") + "],\"refused\":[" + join(refused, ",") +
         "],\"errors\":" + json_errors(errors) + ",\"kinds\":" + json_kinds(score) +
         ",\"ranking\":" + json_ranking(ranking_of(score)) + ",\"rank_correlation\":{" +
         join(correlations, ",") + "},\"notes\":[" + join(notes, ",") + "]}\n";
}

}  // namespace penstock::plan
