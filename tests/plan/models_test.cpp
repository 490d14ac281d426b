// SPDX-License-Identifier: Apache-2.0
#include "plan/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "reference.h"
#include "sim/costs/collectives.h"

namespace penstock::plan {
namespace {

TEST(Models, AreThoseOfTheReferenceTable) {
  const Table table = reference_table("models");
  int compared = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.text(row, "name").starts_with("vtrain")) continue;
    const Model& known = find_model(table.text(row, "name"));
    const model::Shape& shape = known.shape;
    const std::pair<const char*, std::int64_t> columns[] = {
        {"layers", shape.layers},   {"hidden", shape.hidden},          {"ffn", shape.ffn},
        {"heads", shape.heads},     {"kv_heads", shape.kv_heads},      {"vocab", shape.vocab},
        {"experts", shape.experts}, {"top_k", shape.experts_per_token}};
    for (const auto& [column, value] : columns)
      EXPECT_EQ(table.integer(row, column), value) << known.name << column;
    EXPECT_EQ(table.text(row, "tied_embedding") == "yes", shape.tied_embeddings) << known.name;
    EXPECT_EQ(table.text(row, "mlp") == "swiglu", known.mlp_matrices() == 3) << known.name;
    ++compared;
  }
  EXPECT_EQ(compared, 13);
}

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

TEST(Models, AreThoseOfTheTableInTheDocumentation) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/docs/planner.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const Model& known : known_models()) {
    const model::Shape& shape = known.shape;
    std::string row = "| `" + std::string(known.name) + "` |";
    for (const std::int64_t size :
         {shape.layers, shape.hidden, shape.ffn, shape.heads, shape.kv_heads, shape.vocab})
      row += " " + with_commas(size) + " |";
    row += shape.experts == 1
               ? "  |"
               : " " + std::to_string(shape.experts) + ", " + std::to_string(shape.experts_per_token) + " |";
    row += shape.tied_embeddings ? " yes |" : " no |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Models, AllAreValidAndAnUnknownOneNamesTheNearest) {
  for (const Model& known : known_models()) EXPECT_NO_THROW(model::validate(known.shape)) << known.name;
  EXPECT_THROW(find_model("llama-66b"), InputError);
  EXPECT_EQ(padded_vocabulary(32004, 2), 32256);
  EXPECT_EQ(padded_vocabulary(51200, 8), 51200);
}

TEST(HardwareFiles, RatesAreThoseOfTheDataSheets) {
  const Table table = reference_table("hardware");
  const std::map<std::string, std::string> files{{"a100-80g-sxm", "a100"},
                                                 {"a800-80g-sxm", "a800"},
                                                 {"h800-80g-sxm", "h800"},
                                                 {"h100-80g-sxm", "h100"},
                                                 {"h200-141g-sxm", "h200"}};
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto file = files.find(table.text(row, "name"));
    if (file == files.end()) continue;
    const sim::Hardware hardware = read_hardware(file->second);
    EXPECT_EQ(hardware.device.bf16_tflops, table.number(row, "peak_bf16_dense_tflops"));
    EXPECT_EQ(hardware.device.memory_gb, table.number(row, "hbm_GB"));
    EXPECT_NEAR(hardware.device.memory_gbps, 1000 * table.number(row, "hbm_TBps"), 1);
    EXPECT_EQ(hardware.node.link_gbps, table.number(row, "nvlink_GBps_per_direction"));
    EXPECT_EQ(hardware.node.host_link_gbps, table.number(row, "pcie_GBps_per_direction"));
    if (table.text(row, "name") == "a800-80g-sxm") continue;  // its network varies by installation
    EXPECT_EQ(hardware.network.gbps_per_gpu, table.number(row, "nic_Gbps") / 8);
  }
}

TEST(HardwareFiles, RatesThatAreMissingAreRefusedByName) {
  sim::Hardware hardware = read_hardware("a100");
  hardware.network.gbps_per_gpu = 0;
  try {
    validate(hardware, "x.toml");
    FAIL() << "a network without a rate";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("network.gbps_per_gpu"), std::string::npos);
  }
  hardware = read_hardware("a100");
  hardware.device.reserved_gb = 80;
  EXPECT_THROW(validate(hardware, "x.toml"), InputError);
  hardware = read_hardware("a100");
  hardware.measured.matrix_tokens = {1, 2};
  EXPECT_THROW(validate(hardware, "x.toml"), InputError);
}

TEST(HardwareFiles, LargeAllReducesOnOneA100NodeAreMetWithinTwelvePercentOnAverage) {
  const Table table = reference_table("vtrain_allreduce_a100");
  const sim::Hardware hardware = read_hardware("a100");
  double sum = 0;
  int count = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto gpus = static_cast<int>(table.integer(row, "gpus"));
    const double bytes = table.number(row, "bytes");
    if (bytes < 3e7) continue;  // between latency and bandwidth NCCL changes its algorithm
    const Seconds predicted = 2 * ring_pass(hardware, mesh::node_spread(0, 1, gpus, 8), bytes);
    sum += std::abs(predicted / (1e-6 * table.number(row, "time_us")) - 1);
    ++count;
  }
  EXPECT_EQ(count, 42);
  EXPECT_LE(sum / count, 0.12);
}

}  // namespace
}  // namespace penstock::plan
