// SPDX-License-Identifier: Apache-2.0
#include "plan/published/reference_fit.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "plan/published/least_squares.h"
#include "plan/published/score_tables.h"
#include "plan/published/throughput.h"

namespace penstock::plan {
namespace {

// Grows like a square root for large values.
double softened(double z) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + z * z) - 1)), z); }

std::string configuration_of(const Table& table, std::size_t row) {
  std::string key;
  for (const char* column :
       {"model", "params_billion", "hardware", "seq_len", "gpus", "tp", "cp", "ep", "pp", "dp"}) {
    if (table.has(column)) key += table.text(row, column) + " ";
  }
  return key;
}

// Rows of the tables, each with its table.
struct FitRows {
  std::vector<const FitTable*> tables;
  std::vector<FittedRow> figures;
  std::size_t size() const { return figures.size(); }
};

void append_table(FitRows& rows, const FitTable& table, const KnownMachines& known) {
  const Score scored = score(table.table, known);
  std::map<std::size_t, const ThroughputRun*> runs;
  const ThroughputTable read =
      is_throughput(table.table) ? read_throughput(table.table, known) : ThroughputTable{};
  for (const ThroughputRun& run : read.runs) runs.emplace(run.row, &run);
  for (const RefusedRow& row : scored.refused) {
    if (row.bad_input) throw InputError(row.reason);
  }
  for (const ScoredFigure& figure : scored.figures) {
    const auto run = runs.find(figure.row);
    rows.tables.push_back(&table);
    FittedRow fitted;
    fitted.table = table.name;
    fitted.configuration = configuration_of(table.table, figure.row);
    fitted.source = run != runs.end() ? run->second->source : table.name;
    fitted.figure = figure;
    fitted.timed = run != runs.end() ? run->second->timed : timed_case(table.table, figure.row);
    rows.figures.push_back(std::move(fitted));
  }
}

// The cost model with adjustable constants. Not thread-safe.
class Fitting {
 public:
  Fitting(const FitRows& rows, const KnownMachines& start) : rows_(rows), known_(start) {
    find_targets();
    residuals_.count = rows_.size() + fit_parameters().size();
    residuals_.value = [this](std::size_t residual, const std::vector<double>& at) {
      return value(residual, at);
    };
    find_dependence();
  }
  Fitting(const Fitting&) = delete;
  Fitting& operator=(const Fitting&) = delete;

  // Ignores the rows in `unseen`.
  std::vector<double> fit(std::vector<double> start, const std::set<std::size_t>& unseen, int steps) {
    unseen_ = &unseen;
    return least_squares(residuals_, std::move(start), bounds(), steps);
  }
  std::vector<double> deviations_at(const std::vector<double>& at) {
    static const std::set<std::size_t> none;
    unseen_ = &none;
    return deviations(residuals_, at, bounds());
  }

  // The prediction for a row, in the unit of the row's figure.
  double predicted(std::size_t row, const std::vector<double>& at) {
    set(at);
    const FittedRow& fitted = rows_.figures[row];
    const Seconds seconds = seconds_of(fitted.timed, known_);
    if (fitted.figure.quantity == "step s") return seconds;
    return static_cast<double>(fitted.timed.workload.global_batch * fitted.timed.workload.seq_len) / seconds;
  }

  const KnownMachines& known() const { return known_; }
  void set(const std::vector<double>& at);

 private:
  void find_targets();
  void find_dependence();
  double value(std::size_t residual, const std::vector<double>& at);
  double prior(std::size_t parameter, const std::vector<double>& at) const;
  static std::vector<Bounds> bounds() {
    std::vector<Bounds> all;
    for (const FitParameter& parameter : fit_parameters()) all.push_back({parameter.low, parameter.high});
    return all;
  }

  const FitRows& rows_;
  KnownMachines known_;
  std::vector<std::vector<double*>> targets_;  // by parameter
  std::vector<double> values_;                 // current values of the targets
  std::vector<std::size_t> centre_;            // centre of each parameter; itself if it has none
  Residuals residuals_;
  const std::set<std::size_t>* unseen_ = nullptr;
};

template <class Described>
double* number_of(Described& described, const std::string& section, const std::string& key) {
  OptionTable table;
  describe(described, table);
  double* const* number = std::get_if<double*>(&find_option(table, section, key, "fit").target);
  PENSTOCK_CHECK(number != nullptr, "fitted constants are numbers");
  return *number;
}

void Fitting::find_targets() {
  for (const FitParameter& parameter : fit_parameters()) {
    std::vector<double*>& targets = targets_.emplace_back();
    for (const std::string& file : parameter.files) {
      for (const std::string& key : {parameter.key, parameter.also}) {
        if (key.empty()) continue;
        if (parameter.engine) {
          const auto found = known_.engines.find(file);
          if (found == known_.engines.end()) throw InputError("the fit needs the engine \"" + file + "\"");
          targets.push_back(number_of(found->second.engine, parameter.section, key));
        } else {
          const auto found = known_.hardware.find(file);
          if (found == known_.hardware.end())
            throw InputError("the fit needs a description of the hardware \"" + file + "\"");
          targets.push_back(number_of(found->second, parameter.section, key));
        }
      }
    }
  }
}

void Fitting::find_dependence() {
  const auto& parameters = fit_parameters();
  residuals_.of_parameter.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    centre_.push_back(i);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      if (parameters[j].files.empty() && !parameters[i].files.empty() &&
          parameters[j].is_alike(parameters[i]))
        centre_[i] = j;
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const TimedCase& timed = rows_.figures[row].timed;
      const std::string& name = parameters[i].engine ? timed.engine : timed.hardware;
      if (std::ranges::find(parameters[i].files, name) != parameters[i].files.end())
        residuals_.of_parameter[i].push_back(row);
    }
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    residuals_.of_parameter[i].push_back(rows_.size() + i);
    if (centre_[i] != i) residuals_.of_parameter[centre_[i]].push_back(rows_.size() + i);
  }
}

void Fitting::set(const std::vector<double>& at) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (values_.size() == at.size() && values_[i] == at[i]) continue;
    for (double* target : targets_[i]) *target = at[i];
  }
  values_ = at;
}

double Fitting::prior(std::size_t parameter, const std::vector<double>& at) const {
  constexpr double kWeight = 0.3;
  const FitParameter& of = fit_parameters()[parameter];
  const double guess = centre_[parameter] == parameter ? of.guess : at[centre_[parameter]];
  return kWeight * (at[parameter] - guess) / of.spread;
}

double Fitting::value(std::size_t residual, const std::vector<double>& at) {
  if (residual >= rows_.size()) return prior(residual - rows_.size(), at);
  if (unseen_->contains(residual)) return 0;
  const FitTable& table = *rows_.tables[residual];
  const double z =
      std::log(predicted(residual, at) / rows_.figures[residual].figure.published) / table.scatter;
  return table.outliers ? softened(z) : z;
}

// Rows that are left out of the fit together, and the error that this sets.
struct LeftOut {
  std::set<std::size_t> rows;
  double FittedRow::*error = nullptr;
  bool from_guesses = false;  // starts from the guesses, not from values fitted to these rows
};

std::vector<LeftOut> left_out(const FitRows& rows) {
  std::map<std::string, std::set<std::size_t>> configurations, sources;
  std::vector<LeftOut> all;
  for (std::size_t i = 0; i < rows.figures.size(); ++i) {
    const FittedRow& figure = rows.figures[i];
    configurations[figure.table + " " + figure.configuration].insert(i);
    sources[figure.source].insert(i);
    if (rows.tables[i]->by_row) all.push_back({{i}, &FittedRow::unseen_row});
  }
  for (auto& [name, members] : configurations)
    all.push_back({std::move(members), &FittedRow::unseen_configuration});
  for (auto& [name, members] : sources) all.push_back({std::move(members), &FittedRow::unseen_source, true});
  return all;
}

constexpr int kMostSteps = 200;

std::vector<double> first_guesses() {
  std::vector<double> guesses;
  for (const FitParameter& parameter : fit_parameters()) guesses.push_back(parameter.guess);
  return guesses;
}

void leave_out_rows(FitRows& rows, const KnownMachines& start, const std::vector<double>& fitted) {
  const std::vector<LeftOut> groups = left_out(rows);
  const std::vector<double> guesses = first_guesses();
  constexpr std::size_t kThreads = 2;
  std::vector<std::future<void>> work;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    work.push_back(std::async(std::launch::async, [&, thread] {
      Fitting model(rows, start);
      for (std::size_t g = thread; g < groups.size(); g += kThreads) {
        const LeftOut& group = groups[g];
        const auto at = model.fit(group.from_guesses ? guesses : fitted, group.rows, kMostSteps);
        for (const std::size_t row : group.rows) {
          FittedRow& figure = rows.figures[row];
          figure.*group.error = model.predicted(row, at) / figure.figure.published - 1;
        }
      }
    }));
  }
  for (auto& done : work) done.get();
}

}  // namespace

std::string FitParameter::name() const {
  return section + "." + key + (files.empty() ? " typical of " + centre : " of " + join(files, ", "));
}

std::vector<FitTable> reference_fit_tables(const std::function<Table(const std::string& name)>& read) {
  std::vector<FitTable> tables;
  tables.push_back({"atc24_throughput", read("atc24_throughput"), 0.01, false});
  tables.push_back({"calculon_cases", read("calculon_cases"), 0.01, false});
  tables.push_back({"vtrain_multi_node", read("vtrain_multi_node"), 0.04, true});
  for (const char* name : {"throughput/hopper", "throughput/a100"})
    tables.push_back({name, read(name), 0.04, true, false});
  return tables;
}

Fit fit_reference(const std::vector<FitTable>& tables, const KnownMachines& start, bool leave_out) {
  FitRows rows;
  for (const FitTable& table : tables) append_table(rows, table, start);
  Fitting model(rows, start);
  Fit fit;
  fit.values = model.fit(first_guesses(), {}, kMostSteps);
  fit.deviations = model.deviations_at(fit.values);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows.figures[i].figure.predicted = model.predicted(i, fit.values);
  model.set(fit.values);
  fit.known = model.known();
  if (leave_out) leave_out_rows(rows, start, fit.values);
  fit.rows = std::move(rows.figures);
  return fit;
}

}  // namespace penstock::plan
