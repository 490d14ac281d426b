// SPDX-License-Identifier: Apache-2.0
// The colours of every drawing (SVG, report, terminal): Paul Tol's "light" scheme
// (https://personal.sro.nl/~paul/ "Colour Schemes", 2021), made for cells with dark text and distinguishable
// for colour-blind readers. Forward and backward, the pair that matters most, are its blue and its orange,
// which also differ in lightness and so stay distinct in grey print.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/program.h"

namespace penstock::report {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  std::string_view hex;  // "#77aadd"
};

namespace colour {
inline constexpr Colour kBlue{0x77, 0xAA, 0xDD, "#77aadd"};
inline constexpr Colour kOrange{0xEE, 0x88, 0x66, "#ee8866"};
inline constexpr Colour kYellow{0xEE, 0xDD, 0x88, "#eedd88"};
inline constexpr Colour kMint{0x44, 0xBB, 0x99, "#44bb99"};
inline constexpr Colour kPink{0xFF, 0xAA, 0xBB, "#ffaabb"};
inline constexpr Colour kCyan{0x99, 0xDD, 0xFF, "#99ddff"};
inline constexpr Colour kPear{0xBB, 0xCC, 0x33, "#bbcc33"};
inline constexpr Colour kOlive{0xAA, 0xAA, 0x00, "#aaaa00"};
inline constexpr Colour kGrey{0xBB, 0xBB, 0xBB, "#bbbbbb"};
inline constexpr Colour kText{0x1A, 0x1A, 0x1A, "#1a1a1a"};  // text on any of them
}  // namespace colour

// For any number of areas that are not actions (memory categories, causes of idle time), in this order: his
// "muted" scheme, distinct from the colours above, with a lighter indigo, which is seen on dark ground too.
inline constexpr std::array<Colour, 9> kSeriesColours{{{0x44, 0xAA, 0x99, "#44aa99"},
                                                       {0xDD, 0xCC, 0x77, "#ddcc77"},
                                                       {0xCC, 0x66, 0x77, "#cc6677"},
                                                       {0x88, 0xCC, 0xEE, "#88ccee"},
                                                       {0x99, 0x99, 0x33, "#999933"},
                                                       {0xAA, 0x44, 0x99, "#aa4499"},
                                                       {0x66, 0x55, 0xBB, "#6655bb"},
                                                       {0x11, 0x77, 0x33, "#117733"},
                                                       {0x88, 0x22, 0x55, "#882255"}}};

// For the areas after those nine, as a planned step has: none is near any of them, or near another of these,
// as those for thin lines would be.
inline constexpr std::array<Colour, 6> kMoreColours{{{0x44, 0x77, 0xAA, "#4477aa"},
                                                     {0xEE, 0x77, 0x33, "#ee7733"},
                                                     {0xBB, 0xDD, 0x44, "#bbdd44"},
                                                     {0x77, 0x44, 0x22, "#774422"},
                                                     {0xFF, 0xBB, 0xCC, "#ffbbcc"},
                                                     {0x88, 0x88, 0x88, "#888888"}}};

// For thin lines on light and dark backgrounds (curves of several runs), in this order: his "bright" scheme.
inline constexpr std::array<Colour, 6> kLineColours{{{0x44, 0x77, 0xAA, "#4477aa"},
                                                     {0xEE, 0x66, 0x77, "#ee6677"},
                                                     {0x22, 0x88, 0x33, "#228833"},
                                                     {0xCC, 0xBB, 0x44, "#ccbb44"},
                                                     {0x66, 0xCC, 0xEE, "#66ccee"},
                                                     {0xAA, 0x33, 0x77, "#aa3377"}}};

constexpr Colour colour_of(schedule::OpKind kind) {
  using schedule::OpKind;
  switch (kind) {
    case OpKind::Forward:
      return colour::kBlue;
    case OpKind::Backward:
      return colour::kOrange;
    case OpKind::BackwardInput:
      return colour::kYellow;
    case OpKind::BackwardWeight:
      return colour::kMint;
    case OpKind::GatherWeights:
    case OpKind::SendForward:
    case OpKind::ReceiveForward:
    case OpKind::SendEmbedding:
    case OpKind::ReceiveEmbedding:
      return colour::kCyan;
    case OpKind::ReduceGradients:
    case OpKind::SendBackward:
    case OpKind::ReceiveBackward:
    case OpKind::SendEmbeddingGradient:
    case OpKind::ReceiveEmbeddingGradient:
      return colour::kPink;
    case OpKind::VocabularyLoss:
    case OpKind::Reload:
      return colour::kPear;
    case OpKind::ReleaseWeights:
    case OpKind::Offload:
      return colour::kOlive;
    default:
      return colour::kGrey;
  }
}

constexpr Colour colour_of(schedule::Kind kind) {
  return kind == schedule::Kind::Idle ? colour::kGrey : colour_of(schedule::op_kind(kind));
}

// Draws later chunks of a device darker, chunk by chunk, down to 3/4.
constexpr double chunk_lightness(int chunk, int chunks) {
  return chunks <= 1 ? 1.0 : 1.0 - 0.25 * chunk / (chunks - 1);
}

}  // namespace penstock::report
