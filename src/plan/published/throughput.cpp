// SPDX-License-Identifier: Apache-2.0
#include "plan/published/throughput.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "plan/published/checked.h"
#include "plan/published/rows.h"
#include "plan/published/run_memory.h"
#include "plan/published/score_tables.h"
#include "plan/published/throughput_words.h"
#include "plan/trainer.h"

namespace penstock::plan {
namespace {

// Reads a row of the table.
class RunReader {
 public:
  RunReader(const Table& table, std::size_t row, const KnownMachines& known)
      : table_(table), row_(row), known_(known) {}

  ThroughputRun read() const;

 private:
  const std::string& text(const char* column) const { return table_.text(row_, column); }
  std::string text_if_any(const char* column) const {
    return table_.has(column) ? text(column) : std::string();
  }
  bool is_given(const char* column) const { return !text_if_any(column).empty(); }
  // Limits sizes so that their products do not overflow.
  std::int64_t integer(const char* column) const {
    constexpr std::int64_t kMost = 1 << 24;
    const std::int64_t value = table_.integer(row_, column);
    if (value > kMost) refuse(column, "expected at most " + std::to_string(kMost));
    return value;
  }
  [[noreturn]] void refuse(const char* column, const std::string& expected) const {
    refuse_cell(table_, row_, column, expected);
  }

  Model model() const;
  mesh::Mesh mesh(std::int64_t experts) const;
  std::string engine_name() const;
  std::string hardware() const;
  int micro_batch(const mesh::Mesh& mesh) const;
  bool sequence_parallel(const mesh::Mesh& mesh, const sim::Engine& engine) const;
  Layout layout(const Model& model, const sim::Hardware& hardware, const sim::Engine& engine) const;

  const Table& table_;
  const std::size_t row_;
  const KnownMachines& known_;
};

Model RunReader::model() const {
  Model model;
  model::Shape& shape = model.shape;
  shape.layers = integer("layers");
  shape.hidden = integer("hidden");
  shape.heads = integer("heads");
  shape.kv_heads = integer("kv_heads");
  shape.vocab = integer("vocab");
  shape.experts = is_given("experts") ? integer("experts") : 1;
  shape.experts_per_token = shape.experts > 1 ? integer("experts_per_token") : 1;
  shape.ffn = integer(shape.experts > 1 && is_given("moe_ffn") ? "moe_ffn" : "ffn");
  if (shape.kv_heads > shape.heads || shape.heads % shape.kv_heads != 0)
    refuse("kv_heads", "expected a divisor of heads");
  if (shape.experts_per_token > shape.experts) refuse("experts_per_token", "expected at most experts");
  model.family = family_of(text("model"));
  if (const ModelFacts* facts = facts_of(text("model"))) shape.head_size = facts->head_size;
  if (shape.head_size == 0 && shape.hidden % shape.heads != 0)
    refuse("heads", "expected a divisor of hidden");
  return model;
}

mesh::Mesh RunReader::mesh(std::int64_t experts) const {
  const auto ranks = [&](const char* column) {
    return is_given(column) ? static_cast<int>(integer(column)) : 1;
  };
  const mesh::Mesh mesh{ranks("tp"), ranks("cp"), ranks("ep"), ranks("dp"), ranks("pp")};
  check_mesh(table_, row_, mesh);
  if (experts % mesh.expert != 0) refuse("ep", "expected a divisor of experts");
  return mesh;
}

// Uses the column "engine" if given, else the engine file with a match in the source; of several matches, the
// one that ends last.
std::string RunReader::engine_name() const {
  Words names;
  if (const std::string given = text_if_any("engine"); !given.empty()) {
    if (known_.engines.contains(given)) return given;
    for (const auto& [name, unused] : known_.engines) names.push_back(name);
    const std::vector<std::string_view> views(names.begin(), names.end());
    refuse("engine", "no engine has that name" + instead_of(given, views));
  }
  const std::string& source = text("source");
  std::string best;
  std::size_t last = 0;
  for (const auto& [name, engine] : known_.engines) {
    for (const std::string& part : engine.sources) {
      const std::size_t begin = source.find(part);
      if (begin != std::string::npos && begin + part.size() > last) {
        best = name;
        last = begin + part.size();
      }
    }
  }
  if (!best.empty()) return best;
  const std::string typical = typical_engine(text_if_any("fsdp_or_zero"));
  if (known_.engines.contains(typical)) return typical;
  refuse("source", "no engine's file names it, and the table has no column \"engine\"");
}

std::string RunReader::hardware() const {
  const std::string& given = text("hardware");
  if (known_.hardware.contains(given)) return given;
  constexpr std::size_t kFirst = 1 << 16;  // a match at the beginning beats one elsewhere
  std::string best;
  std::size_t length = 0;
  Words names;
  for (const auto& [name, hardware] : known_.hardware) {
    names.push_back(name);
    for (const std::string& beginning : hardware.device.published_as) {
      names.push_back(beginning);
      const std::size_t match = given.starts_with(beginning) ? kFirst + beginning.size()
                                : has_word(given, beginning) ? beginning.size()
                                                             : 0;
      if (match > length) {
        best = name;
        length = match;
      }
    }
  }
  if (!best.empty()) return best;
  const std::vector<std::string_view> views(names.begin(), names.end());
  refuse("hardware", "no hardware file describes it" + instead_of(given, views));
}

// Uses the engine's value if the row has none.
bool RunReader::sequence_parallel(const mesh::Mesh& mesh, const sim::Engine& engine) const {
  const std::string given = lower(text_if_any("sequence_parallel"));
  if (mesh.tensor == 1) return false;
  if (given.empty()) return engine.sequence_parallel;
  if (given == "1" || given == "true" || given == "yes") return true;
  if (given != "0" && given != "false" && given != "no") refuse("sequence_parallel", "expected 0 or 1");
  return false;
}

// Some trainers accept batches that do not divide: assumes enough micro-batches of equal size.
int RunReader::micro_batch(const mesh::Mesh& mesh) const {
  const std::int64_t asked = integer("micro_batch"), batch = integer("global_batch");
  if (batch < mesh.data) refuse("global_batch", "expected at least dp");
  const std::int64_t a_replica = batch / mesh.data, count = ceil_div(a_replica, asked);
  return static_cast<int>(std::min(asked, a_replica / count));
}

Layout RunReader::layout(const Model& model, const sim::Hardware& hardware, const sim::Engine& engine) const {
  Layout layout;
  layout.mesh = mesh(model.shape.experts);
  layout.chunks = is_given("vp") ? static_cast<int>(integer("vp")) : 1;
  if (layout.mesh.pipeline == 1) layout.chunks = 1;
  const std::int64_t layers = model.shape.layers, pipeline = layout.mesh.pipeline;
  if (pipeline > layers) refuse("pp", "more than the model's layers");
  // Embedding and loss may count as layers of the split, so the chunks are capped.
  layout.chunks = static_cast<int>(std::min<std::int64_t>(layout.chunks, layers / pipeline));
  layout.schedule = layout.chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  layout.micro_batch = micro_batch(layout.mesh);
  layout.sharded = sharded_weights(text_if_any("fsdp_or_zero"), layout.mesh.replicas(), hardware.node.gpus);
  adapt(engine, layout);  // before least_recomputed() uses the layout
  const Recomputation again =
      recomputation(text_if_any("recompute"), text_if_any("notes"), layout.sharded.on);
  layout.keep = again.keep;
  if (again.unknown) {
    layout.keep = model::keep_of(model::Policy::Full);
    layout.recomputed =
        least_recomputed({model, integer("seq_len"), integer("global_batch")}, layout, hardware);
  }
  return layout;
}

ThroughputRun RunReader::read() const {
  ThroughputRun run;
  run.row = row_;
  run.model = text("model");
  run.source = text("source").substr(0, text("source").find(' '));
  run.timed.hardware = hardware();
  run.timed.engine = engine_name();
  run.timed.workload = {model(), integer("seq_len"), integer("global_batch")};
  sim::Hardware hardware = find_hardware(known_.hardware, run.timed.hardware);
  if (const auto gpus = gpus_of_node(text("hardware")); gpus && *gpus != hardware.node.gpus)
    run.timed.node_gpus = hardware.node.gpus = *gpus;
  run.timed.changes = changes_of(text_if_any("notes"), text("model"));
  const sim::Engine own = engine_of(run.timed, known_);
  run.timed.layout = layout(run.timed.workload.model, hardware, own);
  const Layout& layout = run.timed.layout;
  const sim::Engine& engine = find_engine(known_.engines, run.timed.engine);
  run.timed.changes.sequence_parallel = sequence_parallel(layout.mesh, engine);
  if (const std::string precision = lower(text_if_any("precision"));
      !precision.empty() && precision.find("bf16") == std::string::npos &&
      precision.find("fp16") == std::string::npos)
    throw Unscored{"its products are not in 16 bits: " + precision};
  if (layout.sharded.on && text_if_any("precision").find("pure") != std::string::npos)
    run.timed.changes.gradient_bytes = 2;
  apply_words(text_if_any("notes"), text("model"), run.timed.workload);
  if (const auto rate = network_rate(text("hardware"), hardware.node.gpus)) {
    if (*rate != hardware.network.gbps_per_gpu) run.timed.network_gbps = *rate;
  }
  run.published = published_figure(table_, row_, "step_s");
  const mesh::Mesh& ranks = layout.mesh;
  if (!own.folded_experts && (std::int64_t{ranks.context} * ranks.data) % ranks.expert != 0)
    refuse("ep", "experts are cut by tensor ranks: expected a divisor of cp·dp");
  return run;
}

constexpr std::string_view kColumns[] = {"source",
                                         "engine",
                                         "model",
                                         "layers",
                                         "hidden",
                                         "ffn",
                                         "heads",
                                         "kv_heads",
                                         "vocab",
                                         "experts",
                                         "experts_per_token",
                                         "moe_ffn",
                                         "hardware",
                                         "gpus",
                                         "seq_len",
                                         "global_batch",
                                         "micro_batch",
                                         "tp",
                                         "cp",
                                         "ep",
                                         "pp",
                                         "dp",
                                         "vp",
                                         "schedule",
                                         "precision",
                                         "sequence_parallel",
                                         "recompute",
                                         "fsdp_or_zero",
                                         "tokens_per_second_per_gpu",
                                         "tflops_per_gpu",
                                         "step_s",
                                         "mfu_printed",
                                         "notes"};
constexpr const char* kNeededColumns[] = {"model",        "layers",      "hidden",   "ffn",  "heads",
                                          "kv_heads",     "vocab",       "hardware", "gpus", "seq_len",
                                          "global_batch", "micro_batch", "dp"};

// Throws Unscored for a run that cannot be expressed, InputError for bad cells.
ThroughputRun read_row(const Table& table, std::size_t row, const KnownMachines& known) {
  if (const ModelFacts* facts = facts_of(table.text(row, "model"));
      facts != nullptr && !facts->reason.empty())
    throw Unscored{std::string(facts->reason)};
  ThroughputRun run = RunReader(table, row, known).read();
  const sim::Hardware& hardware = find_hardware(known.hardware, run.timed.hardware);
  const double share = model_flops(run.timed.workload) / run.published /
                       as_double(run.timed.layout.mesh.world()) / hardware.peak();
  if (share > 1) throw Unscored{"its speed would be " + number(100 * share, 0) + " % of the chip's peak"};
  return run;
}

}  // namespace

std::string ThroughputRun::setting() const {
  const Layout& layout = timed.layout;
  std::string text = timed.hardware + " " + print_mesh(layout.mesh) + " s" +
                     std::to_string(timed.workload.seq_len) + " b" + std::to_string(layout.micro_batch) +
                     " m" + std::to_string(micro_batches(timed.workload, layout));
  if (layout.chunks > 1) text += " v" + std::to_string(layout.chunks);
  if (layout.sharded.on) text += " sharded weights";
  if (layout.keep == model::keep_of(model::Policy::Full) && layout.recomputed > 0)
    text += layout.recomputed < 1 ? " full " + number(100 * layout.recomputed, 0) + "%" : " full";
  return text;
}

std::string ThroughputRun::group(const Table& table) const {
  return model + " " + table.text(row, "hardware") + " " + table.text(row, "gpus");
}

double ThroughputRun::tokens() const {
  return as_double(timed.workload.global_batch * timed.workload.seq_len);
}

ThroughputTable read_throughput(const Table& table, const KnownMachines& known) {
  table.refuse_misspelt(kColumns);
  for (const char* column : kNeededColumns) table.text(0, column);  // throws if missing
  ThroughputTable read;
  for_each_row(table, read.refused,
               [&](std::size_t row) { read.runs.push_back(read_row(table, row, known)); });
  return read;
}

bool is_throughput(const Table& table) { return table.has("step_s") && table.has("source"); }

Score score_throughput(const Table& table, const KnownMachines& known) {
  Score score{"throughput", ErrorKind::Relative, {}, {}, {}, {}, {}};
  ThroughputTable read = read_throughput(table, known);
  for (const ThroughputRun& run : read.runs) {
    score.figures.push_back({run.row, run.model, run.timed.engine + " " + run.setting(), "step s",
                             seconds_of(run.timed, known), run.published, run.timed.engine,
                             run.timed.hardware, family_name(run.timed.workload), run.group(table),
                             run.tokens()});
    const RunMemory memory = run_memory(run.timed.workload, run.timed.layout);
    const sim::Hardware& hardware = find_hardware(known.hardware, run.timed.hardware);
    if (!fits(memory, hardware))
      score.does_not_fit.push_back({run.row, run.setting(), memory.total(), false});
  }
  score.refused = std::move(read.refused);
  return score;
}

}  // namespace penstock::plan
