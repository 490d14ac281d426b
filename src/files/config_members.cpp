// SPDX-License-Identifier: Apache-2.0
#include "files/config_members.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostWidth = 1 << 24;

// Settings that do not affect a forward pass.
constexpr std::string_view kPassedOver[]{"_name_or_path",
                                         "attention_dropout",
                                         "bos_token_id",
                                         "dtype",
                                         "eos_token_id",
                                         "id2label",
                                         "initializer_range",
                                         "label2id",
                                         "max_position_embeddings",
                                         "max_window_layers",
                                         "model_type",
                                         "output_router_logits",
                                         "pad_token_id",
                                         "pretraining_tp",
                                         "router_aux_loss_coef",
                                         "transformers_version",
                                         "torch_dtype",
                                         "use_cache",
                                         "rope_type",
                                         "type",
                                         "return_dict",
                                         "output_hidden_states"};

std::string said(const std::string& key, const json& value) { return printable(key) + " = " + shown(value); }

}  // namespace

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

Members::Members(const json& object, std::string origin) : object_(object), origin_(std::move(origin)) {
  if (!object.is_object()) fail("is not a JSON object");
}

std::int64_t Members::count(const char* key, std::int64_t otherwise) {
  const json* value = take(key);
  if (value == nullptr && otherwise >= 0) return otherwise;
  if (value == nullptr) fail("has no " + std::string(key));
  const bool good = value->is_number_integer() && *value >= 1 && *value <= kMostWidth;
  if (!good) fail(said(key, *value) + " must be an integer from 1 to " + std::to_string(kMostWidth));
  return value->get<std::int64_t>();
}

double Members::number(const char* key, double otherwise) {
  const json* value = take(key);
  if (value == nullptr && otherwise >= 0) return otherwise;
  if (value == nullptr) fail("has no " + std::string(key));
  const bool good = value->is_number() && std::isfinite(value->get<double>()) && value->get<double>() > 0;
  if (!good) fail(said(key, *value) + " must be a positive number");
  return value->get<double>();
}

bool Members::flag(const char* key, bool otherwise) {
  const json* value = take(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(said(key, *value) + " must be true or false");
  return value->get<bool>();
}

void Members::require(const char* key, std::initializer_list<json> allowed) {
  const json* value = take(key);
  if (value == nullptr || std::ranges::find(allowed, *value) != allowed.end()) return;
  fail(said(key, *value) + " is not supported; expected " + allowed.begin()->dump());
}

const json* Members::take(const char* key) {
  taken_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Members::is_null(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

void Members::refuse_the_rest() const {
  for (const auto& [key, value] : object_.items()) {
    const bool known = std::ranges::find(taken_, key) != taken_.end() ||
                       std::ranges::find(kPassedOver, key) != std::end(kPassedOver);
    const bool off = value.is_null() || value == false;
    if (!known && !off) fail(said(key, value) + " is not known, and might change what the model computes");
  }
}

void Members::fail(const std::string& what) const { throw InputError(origin_ + ": " + what); }

}  // namespace penstock::files
