// SPDX-License-Identifier: Apache-2.0
// The op words of a program's text form, shared by printing and parsing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/program.h"

namespace penstock::schedule {

inline constexpr std::string_view kProgramMagic = "penstock program 1";

// Which numbers surround an op's word.
enum class KeyForm : std::uint8_t { None, Stage, Full };

struct OpWord {
  OpKind kind;
  std::string_view text;
  KeyForm key;
};

inline constexpr std::array<OpWord, 20> kOpWords{{
    {OpKind::Forward, "F", KeyForm::Full},
    {OpKind::Backward, "B", KeyForm::Full},
    {OpKind::BackwardInput, "I", KeyForm::Full},
    {OpKind::BackwardWeight, "W", KeyForm::Full},
    {OpKind::SendForward, "SEND_F", KeyForm::Full},
    {OpKind::ReceiveForward, "RECV_F", KeyForm::Full},
    {OpKind::SendBackward, "SEND_B", KeyForm::Full},
    {OpKind::ReceiveBackward, "RECV_B", KeyForm::Full},
    {OpKind::Offload, "OFFLOAD", KeyForm::Full},
    {OpKind::Reload, "RELOAD", KeyForm::Full},
    {OpKind::ReduceGradients, "REDUCE_GRAD", KeyForm::Stage},
    {OpKind::GatherWeights, "GATHER_WEIGHTS", KeyForm::Stage},
    {OpKind::ReleaseWeights, "RELEASE_WEIGHTS", KeyForm::Stage},
    {OpKind::OptimizerStep, "STEP", KeyForm::None},
    {OpKind::VocabularyLoss, "LOSS", KeyForm::Full},
    {OpKind::SendEmbedding, "SEND_EMBED", KeyForm::Full},
    {OpKind::ReceiveEmbedding, "RECV_EMBED", KeyForm::Full},
    {OpKind::SendEmbeddingGradient, "SEND_EMBED_GRAD", KeyForm::Full},
    {OpKind::ReceiveEmbeddingGradient, "RECV_EMBED_GRAD", KeyForm::Full},
    {OpKind::EmbeddingGradient, "EMBED_GRAD", KeyForm::Full},
}};

inline const OpWord& word_of(OpKind kind) { return kOpWords[static_cast<std::size_t>(kind)]; }

}  // namespace penstock::schedule
