// SPDX-License-Identifier: Apache-2.0
// What an action is predicted to take while it runs is what the allocator sees.
#include "model/memory/action.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/memory.h"
#include "nn/kernel_setting.h"
#include "nn/plain_pipeline.h"

namespace penstock::testing {
namespace {

using model::ActionKind;
using model::KeepSet;
using model::Precision;
using Slices = std::vector<std::int64_t>;

struct ActionSetting {
  Precision precision = Precision::F32;
  std::int64_t kv_heads = 4;
  std::int64_t sequences = 1;
  Slices slices;
  KeepSet keep;
  bool split = false;
  std::int64_t experts = 1;  // of which a token has two
  bool head_norms = false;
  std::int64_t shared_ffn = 0;
  bool shared_gate = false;
};

// One micro-batch through two stages of two layers, each action beside its prediction.
class Watched {
 public:
  explicit Watched(ActionSetting setting) : setting_(std::move(setting)), scope_(ledger_) {
    if (setting_.slices.size() > 1) setting_.keep = setting_.keep.with(model::SavedTensor::KeyValue);
    shape_ = {
        .layers = 4, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = setting_.kv_heads, .vocab = 259};
    shape_.experts = setting_.experts;
    shape_.experts_per_token = std::min<std::int64_t>(setting_.experts, 2);
    shape_.head_norms = setting_.head_norms;
    shape_.shared_ffn = setting_.shared_ffn;
    shape_.shared_gate = setting_.shared_gate;
    for (const std::int64_t length : setting_.slices) tokens_ += length;
    stages_ = make_stages(shape_, setting_.precision, 2, tokens_, 64, {4, setting_.keep});
    batch_ = random_batch(shape_, setting_.sequences, tokens_, 1);
  }

  void run() {
    std::int64_t position = 0;
    for (std::size_t slice = 0; slice < setting_.slices.size(); ++slice) {
      at::Tensor hidden;
      for (std::size_t stage = 0; stage < 2; ++stage) hidden = forward(stage, slice, position, hidden);
      position += setting_.slices[slice];
    }
    for (std::size_t slice = setting_.slices.size(); slice-- > 0;) {
      at::Tensor grad;
      for (std::size_t stage = 2; stage-- > 0;) grad = backward(stage, slice, grad);
    }
  }

 private:
  // What travels between stages arrives as a message of its own.
  static at::Tensor message(const at::Tensor& sent) {
    if (!sent.defined()) return sent;
    at::Tensor received = sent.clone();
    backend::recount(received, model::Category::Transfers);
    return received;
  }

  at::Tensor forward(std::size_t stage, std::size_t slice, std::int64_t position, const at::Tensor& sent) {
    nn::ForwardInput input{.key = {0, static_cast<int>(slice)},
                           .place = {setting_.sequences, setting_.slices[slice], position}};
    input.tokens = {batch_.tokens.narrow(1, position, setting_.slices[slice])};
    input.targets = {batch_.targets.narrow(1, position, setting_.slices[slice])};
    input.hidden = message(sent);
    const Bytes used_up = input.hidden.defined() ? static_cast<Bytes>(input.hidden.nbytes()) : 0;
    at::Tensor output;
    compare(ActionKind::Forward, stage, slice, used_up,
            [&] { output = stages_[stage].forward(std::exchange(input, {})).hidden; });
    return output;
  }

  at::Tensor backward(std::size_t stage, std::size_t slice, const at::Tensor& sent) {
    at::Tensor given = message(sent), passed_on;
    const Bytes used_up = given.defined() ? static_cast<Bytes>(given.nbytes()) : 0;
    const nn::SliceKey key{0, static_cast<int>(slice)};
    if (!setting_.split) {
      compare(ActionKind::Backward, stage, slice, used_up,
              [&] { passed_on = stages_[stage].backward(key, given); });
      return passed_on;
    }
    compare(ActionKind::BackwardInput, stage, slice, used_up,
            [&] { passed_on = stages_[stage].backward_input(key, given); });
    given.reset();
    compare(ActionKind::BackwardWeight, stage, slice, 0, [&] { stages_[stage].backward_weight(key); });
    return passed_on;
  }

  template <class Work>
  void compare(ActionKind kind, std::size_t stage, std::size_t slice, Bytes used_up, Work&& work) {
    ledger_.reset_peaks();
    const Bytes temporaries = ledger_.live(model::Category::Transient),
                total = ledger_.live_total() - used_up;
    work();
    const auto predicted = action_memory(size(stage, slice), nn::kernel_setting(setting_.precision, 1), kind);
    const std::string what = policy_text(setting_.keep) + ", action " +
                             std::to_string(static_cast<int>(kind)) + ", stage " + std::to_string(stage) +
                             ", slice " + std::to_string(slice);
    expect_close(predicted.temporary, ledger_.peak(model::Category::Transient) - temporaries,
                 what + ", temporaries");
    expect_close(predicted.growth, ledger_.peak_total() - total, what + ", growth");
  }

  // The room that LibTorch's narrow products take differs from processor to processor; all else is exact.
  void expect_close(Bytes predicted, Bytes measured, const std::string& what) const {
    if (setting_.precision != Precision::BF16) {
      EXPECT_EQ(predicted, measured) << what;
    } else {
      EXPECT_NEAR(static_cast<double>(predicted), static_cast<double>(measured),
                  0.02 * static_cast<double>(measured) + 256.0 * KiB)
          << what;
    }
  }

  model::ActionSize size(std::size_t stage, std::size_t slice) const {
    model::ActionSize size{.shape = shape_,
                           .keep = {2, setting_.keep},
                           .sequences = setting_.sequences,
                           .tokens = setting_.slices[slice],
                           .last_slice = slice + 1 == setting_.slices.size(),
                           .first_stage = stage == 0,
                           .last_stage = stage == 1,
                           .loss_tile = 64};
    for (std::size_t earlier = slice; earlier-- > 0;) size.earlier.push_back(setting_.slices[earlier]);
    return size;
  }

  ActionSetting setting_;
  model::Shape shape_;
  std::int64_t tokens_ = 0;
  backend::Ledger ledger_;
  backend::LedgerScope scope_;
  std::vector<nn::Stage> stages_;
  reference::MicroBatch batch_;
};

class ActionMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    backend::install_allocator();
    at::set_num_threads(1);
  }
};

TEST_F(ActionMemory, IsWhatTheAllocatorSeesForEveryPresetPrecisionAndBackward) {
  using model::Policy;
  for (const Precision precision : {Precision::F64, Precision::F32, Precision::BF16}) {
    for (const std::int64_t kv_heads : {4, 2}) {
      for (const Slices& slices : {Slices{128}, Slices{70, 70, 69}}) {
        for (const Policy policy : {Policy::None, Policy::Balanced, Policy::BalancedFc1, Policy::Full}) {
          for (const bool split : {false, true}) {
            Watched({precision, kv_heads, 1, slices, keep_of(policy), split}).run();
            if (precision == Precision::F32) {
              Watched({precision, kv_heads, 2, slices, keep_of(policy), split}).run();
            }
          }
        }
      }
    }
  }
}

TEST_F(ActionMemory, IsWhatTheAllocatorSeesOfOneKeyHead) {
  for (const Precision precision : {Precision::F64, Precision::F32, Precision::BF16}) {
    for (const std::int64_t sequences : {1, 3}) {
      for (const model::Policy policy : {model::Policy::None, model::Policy::Full}) {
        for (const bool split : {false, true})
          Watched({precision, 1, sequences, Slices{70, 70, 69}, keep_of(policy), split}).run();
      }
    }
  }
}

TEST_F(ActionMemory, IsWhatTheAllocatorSeesForAnyLegalSet) {
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    KeepSet keep{static_cast<std::uint16_t>(random_bits(7, draw))};
    keep = KeepSet{static_cast<std::uint16_t>(keep.bits & ((1u << model::kSavedTensors) - 1))};
    keep = keep.with(model::SavedTensor::LayerInput).without(model::SavedTensor::SiluGate);
    Watched({Precision::F32, 2, 1, draw % 2 ? Slices{96} : Slices{33, 32}, keep, draw % 3 == 0}).run();
  }
}

TEST_F(ActionMemory, IsWhatTheAllocatorSeesOfExpertsAndNormsOfHeads) {
  using model::Policy;
  for (const Precision precision : {Precision::F64, Precision::F32, Precision::BF16}) {
    for (const Slices& slices : {Slices{128}, Slices{70, 70, 69}}) {
      for (const Policy policy : {Policy::None, Policy::Balanced, Policy::BalancedFc1, Policy::Full}) {
        for (const bool split : {false, true}) {
          Watched({precision, 2, 1, slices, keep_of(policy), split, 4, false}).run();
          Watched({precision, 2, 1, slices, keep_of(policy), split, 1, true}).run();
          Watched({precision, 4, 1, slices, keep_of(policy), split, 4, true}).run();
          Watched({precision, 4, 1, slices, keep_of(policy), split, 4, false, 288}).run();
          Watched({precision, 4, 1, slices, keep_of(policy), split, 4, true, 192, true}).run();
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
