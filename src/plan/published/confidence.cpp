// SPDX-License-Identifier: Apache-2.0
#include "plan/published/confidence.h"

#include "base/text.h"
#include "run/description_file.h"

namespace penstock::plan {
namespace {

std::string print_json(const Confidence& confidence) {
  const Interval& found = *confidence.interval;
  return "{\"low_s\":" + exact_number(found.low * confidence.predicted) +
         ",\"high_s\":" + exact_number(found.high * confidence.predicted) +
         ",\"runs\":" + std::to_string(found.runs) +
         ",\"own_engine\":" + (found.own_engine ? "true" : "false") +
         ",\"outside\":" + json_quote_all(confidence.outside) + "}";
}

}  // namespace

Confidence confidence_in(const Question& question, const Plan& plan) {
  if (plan.result.best.empty()) return {};
  const Candidate& first = plan.result.best.front();
  Confidence confidence{.predicted = first.step()};
  const sim::Hardware& hardware = question.cluster.hardware;
  if (hardware.f32() || hardware.device.backend != "cuda") return confidence;  // no such run is published
  const auto file = run::read_beside_descriptions("engines", "checked.csv");
  if (!file) return confidence;
  const std::vector<CheckedRun> runs = read_checked(Table(file->text, file->path));
  const CheckedRun asked = as_checked(question.workload, first.layout, question.cluster.engine.name);
  confidence.interval = interval_of(asked, runs);
  confidence.outside = outside_of(asked, runs);
  return confidence;
}

std::string print(const Confidence& confidence, std::string_view step) {
  if (!confidence.interval) return "";
  const Interval& found = *confidence.interval;
  std::string text =
      "\n" + std::string(step) + ": 80 % interval from " + print_seconds(found.low * confidence.predicted) +
      " to " + print_seconds(found.high * confidence.predicted) + ", by the errors on the " +
      std::to_string(found.runs) + " published runs most like it, left out of the fit with all of " +
      (found.own_engine ? "their configuration" : "their source") + "\n";
  for (const std::string& word : confidence.outside) text += word + "\n";
  return text;
}

std::string print_answer_json(const Question& question, const Plan& plan) {
  std::string json = print_plan_json(plan);
  json.erase(json.rfind('}'));
  json += ",\"assumed\":" + json_quote_all(question.assumed);
  if (const Confidence confidence = confidence_in(question, plan); confidence.interval)
    json += ",\"interval\":" + print_json(confidence);
  return json + "}\n";
}

}  // namespace penstock::plan
