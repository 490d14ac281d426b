// SPDX-License-Identifier: Apache-2.0
#include "plan/published/reference_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "plan/published/least_squares.h"

namespace penstock::plan {
namespace {

using Names = std::vector<std::string>;

double* number_of(sim::Hardware& hardware, const FitParameter& parameter) {
  OptionTable table;
  describe(hardware, table);
  double* const* number =
      std::get_if<double*>(&find_option(table, parameter.section, parameter.key, "fit").target);
  PENSTOCK_CHECK(number != nullptr, "fitted constants are numbers");
  return *number;
}

HardwareSet with_values(HardwareSet hardware, const std::vector<double>& values) {
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (const std::string& name : parameters[i].hardware) {
      const auto found = hardware.find(name);
      if (found == hardware.end())
        throw InputError("the fit needs a description of the hardware \"" + name + "\"");
      *number_of(found->second, parameters[i]) = values[i];
    }
  }
  return hardware;
}

// Grows like a square root for large values.
double softened(double z) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + z * z) - 1)), z); }

// Identifies a figure across tables, and its configuration: the same model, machine and mesh.
struct Key {
  std::size_t table = 0;
  std::size_t row = 0;
  std::string configuration;
};

std::string configuration_of(const Table& table, std::size_t row) {
  std::string key;
  for (const char* column :
       {"model", "params_billion", "hardware", "seq_len", "gpus", "tp", "cp", "pp", "dp"}) {
    if (table.has(column)) key += table.text(row, column) + " ";
  }
  return key;
}

using Unseen = std::function<bool(const Key&)>;

std::vector<double> residuals_of(const std::vector<FitTable>& tables, const HardwareSet& hardware,
                                 const std::vector<double>& values, const Unseen& unseen) {
  std::vector<double> residuals;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (const ScoredFigure& figure : score(tables[t].table, hardware).figures) {
      if (unseen({t, figure.row, configuration_of(tables[t].table, figure.row)})) continue;
      const double z = std::log(figure.predicted / figure.published) / tables[t].scatter;
      residuals.push_back(tables[t].outliers ? softened(z) : z);
    }
  }
  const auto& parameters = fit_parameters();
  for (std::size_t i = 0; i < values.size(); ++i) {
    residuals.push_back(0.3 * (values[i] - parameters[i].guess) / parameters[i].spread);
  }
  return residuals;
}

std::vector<double> fit_values(const std::vector<FitTable>& tables, const HardwareSet& start,
                               std::vector<double> values, const Unseen& unseen) {
  std::vector<Bounds> bounds;
  for (const FitParameter& parameter : fit_parameters()) bounds.push_back({parameter.low, parameter.high});
  const Residuals residuals = [&](const std::vector<double>& at) {
    return residuals_of(tables, with_values(start, at), at, unseen);
  };
  return least_squares(residuals, std::move(values), bounds);
}

// Error of one row under constants fitted without it.
double error_unseen(const std::vector<FitTable>& tables, const HardwareSet& start,
                    const std::vector<double>& values, const Key& key, const Unseen& unseen) {
  const HardwareSet hardware = with_values(start, fit_values(tables, start, values, unseen));
  for (const ScoredFigure& figure : score(tables[key.table].table, hardware).figures) {
    if (figure.row == key.row) return figure.relative_error();
  }
  PENSTOCK_CHECK(false, "the row left out is a row of the table");
}

}  // namespace

const std::vector<FitParameter>& fit_parameters() {
  static const Names h800{"h800"}, a800{"a800"}, a100{"a100", "a100-vtrain"}, vtrain{"a100-vtrain"},
      ampere{"a100", "a100-vtrain", "a800"};
  static const std::vector<FitParameter> parameters{
      {h800, "efficiency", "matrix", 0.65, 0.10, 0.40, 0.85},
      {h800, "efficiency", "matrix_traffic", 0.40, 0.25, 0.0, 1.0},
      {h800, "efficiency", "attention", 0.42, 0.08, 0.25, 0.70},
      {h800, "efficiency", "memory", 0.85, 0.10, 0.50, 0.92},
      {h800, "efficiency", "tensor_exposed", 0.30, 0.30, 0.0, 1.0},
      {h800, "efficiency", "pipeline_exposed", 0.80, 0.40, 0.0, 1.5},
      {h800, "network", "efficiency", 0.85, 0.10, 0.50, 0.97},
      {h800, "network", "gradient_efficiency", 0.85, 0.10, 0.50, 0.97},
      {h800, "kernels", "gap_us", 4.0, 2.0, 0.0, 10.0},
      {a800, "efficiency", "matrix", 0.82, 0.08, 0.50, 0.95},
      {a800, "efficiency", "attention", 0.55, 0.08, 0.35, 0.75},
      {a100, "efficiency", "matrix", 0.82, 0.06, 0.50, 0.95},
      {a100, "efficiency", "plain_attention", 0.50, 0.15, 0.15, 0.90},
      {ampere, "efficiency", "matrix_traffic", 0.40, 0.25, 0.0, 1.0},
      {ampere, "efficiency", "memory", 0.85, 0.10, 0.50, 0.92},
      {ampere, "kernels", "gap_us", 5.0, 4.0, 0.0, 15.0},
      {a100, "efficiency", "pipeline_exposed", 1.0, 0.5, 0.0, 3.0},
      {a100, "network", "efficiency", 0.85, 0.10, 0.50, 0.97},
      {a100, "network", "gradient_efficiency", 0.80, 0.10, 0.40, 0.97},
      {vtrain, "network", "pair_efficiency", 0.75, 0.25, 0.5, 1.0},
  };
  return parameters;
}

std::vector<FitTable> reference_fit_tables(const std::function<Table(const std::string& name)>& read) {
  std::vector<FitTable> tables;
  tables.push_back({read("atc24_throughput"), 0.01, false});
  tables.push_back({read("calculon_cases"), 0.01, false});
  tables.push_back({read("vtrain_multi_node"), 0.04, true});
  return tables;
}

Fit fit_reference(const std::vector<FitTable>& tables, const HardwareSet& start, bool leave_out) {
  std::vector<double> guesses;
  for (const FitParameter& parameter : fit_parameters()) guesses.push_back(parameter.guess);
  Fit fit;
  fit.values = fit_values(tables, start, guesses, [](const Key&) { return false; });
  fit.hardware = with_values(start, fit.values);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const Score scored = score(tables[t].table, fit.hardware);
    for (const ScoredFigure& figure : scored.figures) {
      FittedRow row{scored.kind, figure, 0, 0};
      const Key key{t, figure.row, configuration_of(tables[t].table, figure.row)};
      if (leave_out) {
        row.unseen_row = error_unseen(tables, start, fit.values, key, [&](const Key& other) {
          return other.table == key.table && other.row == key.row;
        });
        row.unseen_configuration = error_unseen(tables, start, fit.values, key, [&](const Key& other) {
          return other.table == key.table && other.configuration == key.configuration;
        });
      }
      fit.rows.push_back(std::move(row));
    }
  }
  return fit;
}

}  // namespace penstock::plan
