// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

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
         ",\"relative_error\":" + exact_number(figure.relative_error()) + "}";
}

std::string json_out_of_memory(const ScoredOutOfMemory& row) {
  return "{\"row\":" + std::to_string(row.row + 1) + ",\"setting\":" + json_quote(row.setting) +
         ",\"predicted_bytes\":" + number(row.predicted_bytes, 0) +
         ",\"predicted_to_fit\":" + (row.predicted_to_fit ? "true" : "false") + "}";
}

}  // namespace

std::string print_score(const Score& score) {
  Rows rows, out_of_memory;
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
  const ErrorStatistics errors = statistics_of(score);
  text += std::to_string(errors.count) + " figures, absolute " +
          (score.error_kind == ErrorKind::Relative ? "relative " : "") + "error: mean " +
          statistic_text(score, errors.mean) + ", median " + statistic_text(score, errors.median) + ", p90 " +
          statistic_text(score, errors.p90) + ", greatest " + statistic_text(score, errors.greatest) + "\n";
  for (const auto& [model, correlation] : rank_correlations(score)) {
    text += "rank correlation " + model + ": " + number(correlation, 4) + "\n";
  }
  for (const std::string& note : score.notes) text += "note: " + note + "\n";
  return text;
}

std::string print_score_json(const Score& score) {
  const ErrorStatistics errors = statistics_of(score);
  const bool relative = score.error_kind == ErrorKind::Relative;
  std::vector<std::string> figures, out_of_memory, correlations, notes;
  for (const ScoredFigure& figure : score.figures) figures.push_back(json_figure(figure));
  for (const ScoredOutOfMemory& row : score.out_of_memory) out_of_memory.push_back(json_out_of_memory(row));
  for (const auto& [model, value] : rank_correlations(score)) {
    correlations.push_back(json_quote(model) + ":" + exact_number(value));
  }
  for (const std::string& note : score.notes) notes.push_back(json_quote(note));
  return "{\"kind\":" + json_quote(score.kind) +
         ",\"error_kind\":" + (relative ? "\"relative\"" : "\"absolute\"") + ",\"rows\":[" +
         join(figures, ",") + "],\"out_of_memory\":[" + join(out_of_memory, ",") +
         "],\"errors\":{\"count\":" + std::to_string(errors.count) +
         ",\"mean\":" + exact_number(errors.mean) + ",\"median\":" + exact_number(errors.median) +
         ",\"p90\":" + exact_number(errors.p90) + ",\"greatest\":" + exact_number(errors.greatest) +
         "},\"rank_correlation\":{" + join(correlations, ",") + "},\"notes\":[" + join(notes, ",") + "]}\n";
}

}  // namespace penstock::plan
