// SPDX-License-Identifier: Apache-2.0
#include "model/parameters.h"

#include <string_view>

namespace penstock::model {
namespace {

std::vector<std::int64_t> sizes_of(std::string_view name, const Shape& shape) {
  const auto is = [&](std::string_view part) { return name.ends_with(std::string(part) + ".weight"); };
  if (is("q_proj")) return {shape.query_width(), shape.hidden};
  if (is("k_proj") || is("v_proj")) return {shape.kv_width(), shape.hidden};
  if (is("o_proj")) return {shape.hidden, shape.query_width()};
  if (name.find(".shared_expert.") != std::string_view::npos)
    return is("down_proj") ? std::vector{shape.hidden, shape.shared_ffn}
                           : std::vector{shape.shared_ffn, shape.hidden};
  if (is("shared_expert_gate")) return {1, shape.hidden};
  if (is("gate_proj") || is("up_proj") || is(".w1") || is(".w3")) return {shape.ffn, shape.hidden};
  if (is("down_proj") || is(".w2")) return {shape.hidden, shape.ffn};
  if (is(".gate")) return {shape.experts, shape.hidden};  // the router
  if (is("q_norm") || is("k_norm")) return {shape.head_dim()};
  if (is("embed_tokens") || is("lm_head")) return {shape.vocab, shape.hidden};
  return {shape.hidden};  // a norm
}

std::vector<ParameterShape> shapes_of(const std::vector<std::string>& names, const Shape& shape) {
  std::vector<ParameterShape> parameters;
  for (const std::string& name : names) parameters.push_back({name, sizes_of(name, shape)});
  return parameters;
}

}  // namespace

std::vector<ParameterShape> parameter_shapes(const Shape& shape) {
  return shapes_of(parameter_names(shape), shape);
}

std::vector<ParameterShape> layer_parameter_shapes(const Shape& shape, std::int64_t layer) {
  return shapes_of(layer_parameter_names(shape, layer), shape);
}

}  // namespace penstock::model
