// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.h"

#include <algorithm>

#include "backend/device.h"
#include "comm/rank_names.h"
#include "profile/attention.h"
#include "profile/disk.h"
#include "profile/links.h"
#include "profile/memory_work.h"
#include "profile/products.h"

namespace penstock::profile {

namespace {

using Say = std::function<void(const std::string&)>;

void measure_computation(Recorder& recorder, const Request& request, const Say& say, Measurements& measured) {
  const bool narrow = request.precision == model::Precision::BF16;
  if (narrow || request.other_precision) {
    say("matrix products in bf16");
    measured.products = measure_products(recorder, request.sizes, model::Precision::BF16);
  }
  if (!narrow || request.other_precision) {
    say("matrix products in f32");
    measured.f32_products = measure_products(recorder, request.sizes, model::Precision::F32);
  }
  say("attention");
  measured.attention = measure_attention(recorder, request.sizes, request.precision);
  say("norms, rotation, SwiGLU");
  measured.elementwise = measure_elementwise(recorder, request.sizes, request.precision);
  say("optimizer");
  measured.optimizer_rate = request.optimizer_bytes / recorder.seconds(request.optimizer());
  say("whole layers");
  Seconds layers[5];  // median of several, since the other figures are subtracted from it
  const std::function<void()> work = request.layers();
  for (Seconds& seconds : layers) seconds = recorder.seconds(work);
  std::ranges::nth_element(layers, layers + 2);
  measured.layer_seconds = layers[2];
}

}  // namespace

Measurements measure_machine(comm::Communicator& world, const Request& request, const Say& say) {
  Recorder recorder(world, request.effort);
  Measurements measured{
      .sizes = request.sizes, .precision = request.precision, .once = request.effort.once()};
  measured.optimizer_work = request.optimizer_work;
  recorder.compare_with(yardstick());
  measure_computation(recorder, request, say, measured);
  if (!measured.once) {
    say("all of these once more");
    recorder.take_again();
    measure_computation(
        recorder, request, [](const std::string&) {}, measured);
  }
  recorder.compare_with({});
  say("messages between ranks");
  const MessagePartners partners = message_partners(request.hosts, world.rank());
  measured.message_seconds = measure_messages(recorder, request.sizes, partners.here);
  if (comm::ranks_by_host(request.hosts).size() > 1)
    measured.network_seconds = measure_messages(recorder, request.sizes, partners.away);
  say("copies within memory");
  const double copied = measure_copy(recorder, request.sizes);
  measured.memory_rate = 2 * copied;
  measured.copy_rate =
      backend::compute_device().is_cpu() ? copied : measure_host_link(recorder, request.sizes);
  say("copies to and from disk");
  measured.disk = measure_disk(recorder, request.disk_folder, request.open_unnamed);
  world.barrier();
  measured.disturbed = recorder.disturbed();
  measured.spread = recorder.spread();
  return measured;
}

}  // namespace penstock::profile
