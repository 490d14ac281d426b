// SPDX-License-Identifier: Apache-2.0
#include "train/exchange/server.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "comm/message.h"
#include "comm/polled_wait.h"
#include "comm/polling.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/kernels/boundary.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/parameters/parameter_maker.h"
#include "run/context.h"
#include "train/exchange/own_requests.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kEnd = -1;  // instead of an exchange's number: no more requests in this step

}  // namespace

ExchangeServer::ExchangeServer(const run::Run& run, comm::Pipeline pipeline, backend::SideStream& side,
                               std::function<bool()> meanwhile)
    : run_(run),
      shape_(run::cached_shape(run)),
      pipeline_(pipeline),
      type_(nn::compute_type(run.precision)),
      timeout_(run.options.train.timeout),
      side_(side),
      polling_(comm::make_polling(
          *pipeline,
          [this, meanwhile = std::move(meanwhile)] {
            const bool moved = meanwhile && meanwhile();
            return serve() || moved;
          },
          timeout_)) {
  std::set<int> partners, owners;
  for (std::uint32_t i = 0; i < run_.program.exchanges.size(); ++i) {
    const schedule::Exchange& exchange = run_.program.exchanges[i];
    if (parts_of(exchange).empty()) continue;  // half a one-token slice can be empty
    if (exchange.owner == pipeline_->rank()) {
      own_[schedule::pass_of(exchange.of)].push_back(i);
      partners.insert(exchange.partner);
    }
    if (exchange.partner == pipeline_->rank()) owners.insert(exchange.owner);
  }
  partners_.assign(partners.begin(), partners.end());
  for (const int device : owners) owners_.push_back({.device = device, .announcement = {}});
}

ExchangeServer::~ExchangeServer() {
  try {
    const backend::SideStream::Scope beside(side_);
    jobs_.clear();
    replying_.clear();
  } catch (const std::exception&) {  // a lost GPU, which has been reported
  }
}

void ExchangeServer::begin(std::span<const at::Tensor> documents) {
  documents_ = documents;
  drained_ = false;
  times_.clear();
  processor_seconds_ = 0;
  for (Owner& owner : owners_) {
    owner.ended = false;
    await_announcement(owner);
  }
}

void ExchangeServer::await_announcement(Owner& owner) {
  owner.announcement.buffer = words();
  owner.announcement.message =
      message_of(false, owner.announcement.buffer, owner.device, schedule::Channel::Exchange);
  owner.announcement.request =
      pipeline_->receive(nn::bytes_of_tensor(owner.announcement.buffer), owner.device,
                         static_cast<int>(schedule::Channel::Exchange));
}

std::unique_ptr<nn::AttentionPartners> ExchangeServer::partners_of(const schedule::Op& op) {
  const auto found = own_.find({is_backward(op.kind), op.key});
  if (found == own_.end()) return nullptr;
  return std::make_unique<OwnRequests>(*this, found->second);
}

bool ExchangeServer::serve() {
  if (serving_) return false;
  serving_ = true;
  const struct Restore {
    bool& flag;
    ~Restore() { flag = false; }
  } restore{serving_};
  const bool sent = forget_sent(asking_);
  const backend::SideStream::Scope beside(side_);
  return serve_arrived() || sent;
}

bool ExchangeServer::serve_arrived() {
  bool moved = forget_sent(replying_);  // before allocating new buffers
  for (Owner& owner : owners_) moved |= take_announcement(owner);
  for (std::size_t i = 0; i < jobs_.size();) {
    const bool arrived =
        std::ranges::all_of(jobs_[i].arriving, [](comm::Request& part) { return part.test(); });
    if (!arrived) {
      ++i;
      continue;
    }
    const Job job = std::move(jobs_[i]);
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    carry_out(job);
    moved = true;
  }
  moved |= forget_sent(replying_);
  return moved;
}

bool ExchangeServer::forget_sent(Flights& flights) {
  return std::erase_if(flights, [](Flight& flight) { return flight.request.test(); }) > 0;
}

bool ExchangeServer::take_announcement(Owner& owner) {
  if (owner.ended || !owner.announcement.request.test()) return false;
  const auto* words = owner.announcement.buffer.const_data_ptr<std::int64_t>();
  owner.ended = words[0] == kEnd;
  if (owner.ended) {
    owner.announcement.buffer.reset();
    return true;
  }
  const auto& all = run_.program.exchanges;
  const bool known = words[0] >= 0 && words[0] < std::ssize(all) && words[1] >= 0 && words[1] <= 1;
  const schedule::Exchange* exchange = known ? &all[words[0]] : nullptr;
  if (!exchange || exchange->partner != pipeline_->rank() || exchange->owner != owner.device)
    throw RunError("device " + std::to_string(owner.device) + " requests exchange number " +
                   std::to_string(words[0]) + ", which the program does not have for it");
  accept(owner, static_cast<std::uint32_t>(words[0]), static_cast<Pass>(words[1]));
  await_announcement(owner);
  return true;
}

void ExchangeServer::accept(const Owner& owner, std::uint32_t number, Pass pass) {
  const schedule::Exchange& exchange = run_.program.exchanges[number];
  Job job{.exchange = number, .pass = pass};
  const auto receive = [&](const at::Tensor& buffer) {
    job.arriving.push_back(pipeline_->receive(nn::bytes_of_tensor(buffer), owner.device,
                                              static_cast<int>(schedule::Channel::Exchange)));
  };
  for (const model::SlicePart& part : parts_of(exchange)) {
    const at::Tensor key = room_of_keys(part, type_);
    const at::Tensor value = room({run_.sequences(), part.length, shape_.kv_heads, shape_.head_dim()}, type_);
    receive(key);
    receive(value);
    job.parts.push_back({{key, value.transpose(1, 2)}, visible_of(exchange, part)});
  }
  receive(job.query = room_of_queries(exchange, type_));
  if (pass == Pass::Backward) {
    receive(job.log_sum_exp = room(job.query.sizes().slice(0, 3), accumulator()));
    receive(job.output = room_of_outputs(exchange));
    receive(job.grad_output = room_of_outputs(exchange));
  }
  jobs_.push_back(std::move(job));
}

void ExchangeServer::carry_out(const Job& job) {
  static const std::function<void()> kNothing = [] {};
  const nn::BoundaryScope none(kNothing);  // whose work belongs to another stream
  const backend::CategoryScope category(model::Category::Transient);
  const backend::Moment start = backend::moment_now();
  const Seconds processor = processor_seconds_of_this_thread();
  reply(job);
  const Seconds used = processor_seconds_of_this_thread() - processor;
  processor_seconds_ += used;
  times_.served(job.exchange, start, backend::moment_now(), used);
}

void ExchangeServer::reply(const Job& job) {
  const int owner = run_.program.exchanges[job.exchange].owner;
  const auto send_back = [&](const at::Tensor& result) {
    backend::recount(result, model::Category::Transfers);
    send(result, owner, schedule::Channel::ExchangeReply, replying_);
  };
  if (job.pass == Pass::Forward) {
    const nn::kernels::AttentionPart result = nn::attend_to(job.query, job.parts);
    send_back(result.output);
    return send_back(result.log_sum_exp);
  }
  const nn::ServedGradients result = nn::attend_to_backward(
      as_used(job.grad_output), job.query, {as_used(job.output), job.log_sum_exp}, job.parts);
  send_back(result.query);
  for (const nn::KeyValues& part : result.parts) {
    send_back(part.key);
    send_back(part.value);
  }
}

void ExchangeServer::drain() {
  if (std::exchange(drained_, true)) return;
  for (const int partner : partners_) announce(partner, kEnd, Pass::Forward);
  const auto done = [this] {
    return std::ranges::all_of(owners_, &Owner::ended) && jobs_.empty() && replying_.empty() &&
           asking_.empty();
  };
  const auto awaited = [this] { return comm::Awaited{unfinished(), "the end of context exchange"}; };
  comm::advance_until(
      done, [this] { return serve(); }, awaited, timeout_);
}

// Of a device that may still send requests, or has not received its reply.
const comm::Message& ExchangeServer::unfinished() const {
  const auto owner = std::ranges::find(owners_, false, &Owner::ended);
  if (owner != owners_.end()) return owner->announcement.message;
  const Flights& sending = replying_.empty() ? asking_ : replying_;
  PENSTOCK_CHECK(!sending.empty(), "a device ends its requests when it has their replies");
  return sending.front().message;
}

comm::Message ExchangeServer::message_of(bool sending, const at::Tensor& buffer, int peer,
                                         schedule::Channel channel) const {
  return {sending, pipeline_->world_rank(peer), static_cast<int>(channel),
          static_cast<Bytes>(buffer.nbytes())};
}

void ExchangeServer::send(const at::Tensor& buffer, int to, schedule::Channel channel, Flights& flights) {
  Flight flight{.message = message_of(true, buffer, to, channel), .buffer = buffer, .request = {}};
  flight.request = pipeline_->send(nn::bytes_of_tensor(buffer), to, static_cast<int>(channel));
  flights.push_back(std::move(flight));
}

void ExchangeServer::announce(int to, int exchange, Pass pass) {
  const at::Tensor told = words();
  told.mutable_data_ptr<std::int64_t>()[0] = exchange;
  told.mutable_data_ptr<std::int64_t>()[1] = static_cast<std::int64_t>(pass);
  send(told, to, schedule::Channel::Exchange);
}

std::vector<model::SlicePart> ExchangeServer::parts_of(const schedule::Exchange& exchange) const {
  return model::parts_of_halves(run::cached_slices(run_, exchange.of.key.micro_batch), exchange.first_half,
                                exchange.halves);
}

// Of the exchange's queries to the part's keys.
nn::kernels::Visible ExchangeServer::visible_of(const schedule::Exchange& exchange,
                                                const model::SlicePart& part) const {
  if (documents_.empty()) return {};
  const auto j = static_cast<std::size_t>(exchange.of.key.micro_batch);
  const auto& slices = run_.slices[j];
  const model::TokenRange& queries = slices[static_cast<std::size_t>(exchange.of.key.slice)];
  return {nn::kernels::Mask::None, documents_[j].narrow(1, queries.begin, queries.length),
          slices[static_cast<std::size_t>(part.slice)].begin + part.begin};
}

// Of an announcement, which the host reads.
at::Tensor ExchangeServer::words() const {
  const backend::CategoryScope category(model::Category::Transfers);
  return at::empty({2}, at::kLong);
}

at::Tensor ExchangeServer::room(at::IntArrayRef sizes, at::ScalarType type) const {
  const backend::CategoryScope category(model::Category::Transfers);
  return at::empty(sizes, backend::on_device(type));
}

at::Tensor ExchangeServer::room_of_queries(const schedule::Exchange& exchange, at::ScalarType type) const {
  const auto& slices = run_.slices[exchange.of.key.micro_batch];
  const Tokens tokens = slices[exchange.of.key.slice].length;
  return room({run_.sequences(), shape_.heads, tokens, shape_.head_dim()}, type);
}

at::Tensor ExchangeServer::room_of_keys(const model::SlicePart& part, at::ScalarType type) const {
  return room({run_.sequences(), shape_.kv_heads, part.length, shape_.head_dim()}, type);
}

// Outputs and their gradients are sent token by token, but head by head for grouped queries: the layouts of
// the attention kernels, so neither needs a copy.
at::Tensor ExchangeServer::as_sent(const at::Tensor& outputs) const {
  return (shape_.heads == shape_.kv_heads ? outputs.transpose(1, 2) : outputs).contiguous();
}

at::Tensor ExchangeServer::as_used(const at::Tensor& sent) const {
  return shape_.heads == shape_.kv_heads ? sent.transpose(1, 2) : sent;
}

at::Tensor ExchangeServer::room_of_outputs(const schedule::Exchange& exchange) const {
  const at::Tensor by_head = room_of_queries(exchange, type_);
  if (shape_.heads != shape_.kv_heads) return by_head;
  return by_head.view({by_head.size(0), by_head.size(2), by_head.size(1), by_head.size(3)});
}

at::ScalarType ExchangeServer::accumulator() const { return nn::kernels::accumulator_type(type_); }

}  // namespace penstock::train
