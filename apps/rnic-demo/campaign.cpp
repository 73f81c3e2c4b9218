#include <algorithm>
#include <iostream>
#include <map>

#include "rnic-demo/demo.hpp"

namespace rnic::demo {

using workload::Operation;

namespace {

constexpr const char* kInitiatorGreeting = "softrnic demo: hello from rnic0";
constexpr const char* kResponderGreeting = "softrnic demo: hello from rnic1";
constexpr uint64_t kPictureSize = 1u << 20;
constexpr uint64_t kOctetsPerRun = 4u << 20;  // small messages repeat up to this much
constexpr uint64_t kMessagesPerRun = 256;
constexpr uint64_t kWordsPerRun = 4096;  // enough of them for the hostile wire to hit some

std::span<const uint8_t> octets_of(const char* text) {
  return {reinterpret_cast<const uint8_t*>(text), std::string_view(text).size()};
}

/// Counters of both devices that a run is judged by.
struct Tally {
  uint64_t data_segments = 0;
  uint64_t aligned_segments = 0;
  uint64_t ooo_placed = 0;
  uint64_t held = 0;
  uint64_t retransmissions = 0;
  uint64_t crc_drops = 0;

  static Tally of(const workload::Pair& pair) {
    Tally tally;
    for (const workload::End* end : {pair.initiator.get(), pair.responder.get()}) {
      std::map<std::string, uint64_t> values;
      for (const Counter& c : end->device.counters()) values[c.layer + "." + c.name] = c.value;
      tally.data_segments += values["tcp.data_segments_out"];
      tally.aligned_segments += values["tcp.aligned_segments_out"];
      tally.ooo_placed += values["mpa.placed_early_octets"];
      tally.held += values["mpa.held_octets"];
      tally.retransmissions += values["tcp.retransmitted_segments"];
      tally.crc_drops += values["mpa.crc_drops"];
    }
    return tally;
  }
};

/// One wire: a context, a connection for each operation.
class WireCampaign {
 public:
  WireCampaign(Wire wire, uint64_t seed, Campaign& campaign)
      : wire_(wire), seed_(seed), campaign_(campaign) {}

  Status open();
  Status run_operation(Operation operation, const std::vector<uint64_t>& sizes);

 private:
  Status connect();
  Run run_one(Operation operation, uint64_t size);
  void draw(Operation operation);
  void note_facts();

  Wire wire_;
  uint64_t seed_;
  Campaign& campaign_;
  std::unique_ptr<Context> context_;
  workload::Pair pair_;
};

Status WireCampaign::open() {
  Config config = Config::loopback();
  config.set("mpa.markers=true");
  config.set("mpa.silent_drop=true");
  // Loss is found within microseconds here; the time-out is the last resort and may come early.
  config.set("tcp.rto_min=5ms");
  config.set("tcp.rto_initial=20ms");
  config.set("tcp.delayed_ack=1ms");  // below the time-out it must not provoke
  if (wire_ == Wire::Hostile) {
    // Three time-outs of a segment in a row do not mean here that the path swallows large ones. A
    // sender that takes them for that cuts FPDUs, and one that has come in pieces cannot be dropped
    // silently.
    config.set("tcp.mtu_probing=false");
    config.set("device.*.impair.seed=" + std::to_string(seed_));
    config.set("device.*.impair.drop=0.01");
    config.set("device.*.impair.reorder=0.02");
    config.set("device.*.impair.reorder_min=1");
    config.set("device.*.impair.reorder_max=32");
    config.set("device.*.impair.duplicate=0.005");
    config.set("device.*.impair.corrupt=0.001");
    config.set("device.*.impair.repair=0.5");
  }
  auto context = Context::open(config);
  if (!context) return tl::unexpected(context.error());
  context_ = std::make_unique<Context>(std::move(*context));
  campaign_.configuration += std::string("# ") + to_string(wire_) + " wire\n" + config.text();
  for (const std::string& line : config.overrides()) campaign_.configuration += line + "\n";
  campaign_.configuration += "\n";
  std::cerr << to_string(wire_) << " wire: " << context_->environment()
            << "; tcp.rto_min 5 ms, tcp.delayed_ack 1 ms\n";
  return {};
}

Status WireCampaign::connect() {
  workload::PairOptions options;
  options.initiator_data = octets_of(kInitiatorGreeting);
  options.responder_data = octets_of(kResponderGreeting);
  auto pair = workload::connect_pair(*context_, "rnic0", "rnic1", options);
  if (!pair) return tl::unexpected(pair.error());
  pair_ = std::move(*pair);
  note_facts();
  return {};
}

void WireCampaign::note_facts() {
  if (wire_ == Wire::Hostile || !campaign_.facts.empty()) return;
  const Device& device = pair_.initiator->device;
  campaign_.facts = {
      {"Machine", workload::machine()},
      {"Environment", context_->environment()},
      {"Devices", "rnic0 " + to_string(device.address()) + " and rnic1 " +
                      to_string(pair_.responder->device.address()) + ", one thread polls both"},
      {"MTU", std::to_string(device.mtu()) + " octets"},
      {"Checksums", "clean wire: " + device.checksum_mode() + "; hostile wire: software"},
      {"MPA", "CRC32C on, markers on in both directions, silent drop on"},
      {"TCP",
       "SACK, timestamps, CUBIC; tcp.rto_min 5 ms, tcp.delayed_ack 1 ms; on the hostile wire no "
       "search for the path's MTU, which would take three time-outs in a row for a smaller one and "
       "cut FPDUs: a damaged one that has come in pieces ends the connection"},
      {"Hostile wire",
       "each direction: drops 1 %, reorders 2 % (held back by 1 to 32 frames), duplicates 0.5 %, "
       "corrupts 0.1 % of the frames, half of these with the TCP checksum repaired"},
  };
}

Run WireCampaign::run_one(Operation operation, uint64_t size) {
  Run run;
  run.operation = operation;
  run.size = size;
  run.wire = wire_;
  run.messages = workload::is_of_word(operation)
                     ? kWordsPerRun
                     : std::clamp<uint64_t>(kOctetsPerRun / size, 1, kMessagesPerRun);
  workload::TransferOptions options;
  options.operation = operation;
  options.size = size;
  options.slots = static_cast<uint32_t>(run.messages);
  options.depth = 32;
  options.seed = seed_ ^ size;
  Context& context = *context_;
  auto transfer =
      workload::Transfer::create(context, pair_, options, [&context] { context.poll(); });
  if (!transfer) {
    run.error = transfer.error().message;
    run.starved = workload::is_of_environment(transfer.error());
    return run;
  }
  (*transfer)->prepare();
  const Tally before = Tally::of(pair_);
  workload::TransferResult result;
  if (Status status = (*transfer)->run(run.messages, result); !status) {
    run.error = status.error().message;
    return run;
  }
  const Tally after = Tally::of(pair_);
  const auto elapsed = static_cast<double>(result.elapsed_ns);
  run.goodput_gbps = static_cast<double>(result.octets) * 8.0 / elapsed;
  run.msgs_per_s = static_cast<double>(result.messages) * 1e9 / elapsed;
  const uint64_t segments = after.data_segments - before.data_segments;
  run.aligned_pct =
      segments == 0
          ? 0
          : 100.0 * static_cast<double>(after.aligned_segments - before.aligned_segments) /
                static_cast<double>(segments);
  run.ooo_placed_octets = after.ooo_placed - before.ooo_placed;
  run.held_octets = after.held - before.held;
  run.retransmissions = after.retransmissions - before.retransmissions;
  run.crc_drops = after.crc_drops - before.crc_drops;
  const auto mismatch = (*transfer)->verify();
  run.verified = !mismatch;
  if (mismatch) run.error = workload::describe(*mismatch);
  return run;
}

void WireCampaign::draw(Operation operation) {
  workload::TransferOptions options;
  options.operation = operation;
  options.size = kPictureSize;
  Context& context = *context_;
  auto transfer =
      workload::Transfer::create(context, pair_, options, [&context] { context.poll(); });
  if (!transfer) return;
  (*transfer)->prepare();
  const bool read = operation == Operation::Read;
  workload::End& sender = read ? *pair_.responder : *pair_.initiator;
  workload::End& receiver = read ? *pair_.initiator : *pair_.responder;
  if (!sender.qp.start_trace(65536) || !receiver.qp.start_trace(65536)) return;
  workload::TransferResult result;
  const Status status = (*transfer)->run(1, result);
  auto sent = sender.qp.take_trace();
  auto received = receiver.qp.take_trace();
  if (!status || !sent || !received) return;
  Picture picture;
  picture.operation = operation;
  picture.size = kPictureSize;
  for (const TraceEvent& event : *sent) {
    if (event.kind == TraceKind::Sent || event.kind == TraceKind::Retransmitted) {
      picture.events.push_back(event);
    }
  }
  for (const TraceEvent& event : *received) {
    if (event.kind != TraceKind::Sent && event.kind != TraceKind::Retransmitted) {
      picture.events.push_back(event);
    }
  }
  if (picture.events.empty()) return;
  uint64_t first = UINT64_MAX;
  for (const TraceEvent& e : picture.events) first = std::min(first, e.begin);
  for (TraceEvent& e : picture.events) e.begin -= first, e.end -= std::min(first, e.end);
  std::stable_sort(picture.events.begin(), picture.events.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  campaign_.pictures.push_back(std::move(picture));
}

Status WireCampaign::run_operation(Operation operation, const std::vector<uint64_t>& sizes) {
  if (Status status = connect(); !status) return status;
  std::cerr << "  " << workload::to_string(operation) << ":" << std::flush;
  for (const uint64_t size : sizes) {
    campaign_.runs.push_back(run_one(operation, size));
    const Run& run = campaign_.runs.back();
    if (is_headline_size(size)) std::cerr << " " << size_text(size) << std::flush;
    if (run.verified) continue;
    std::cerr << "\n  " << size << " octets not verified: " << run.error << "\n";
    return {};  // the connection may be gone; what is missing keeps the campaign incomplete
  }
  if (wire_ == Wire::Hostile && sizes.size() > 1) draw(operation);
  std::cerr << " ok\n";
  return workload::disconnect_pair(*context_, pair_, 10000);
}

}  // namespace

const char* to_string(Wire wire) { return wire == Wire::Clean ? "clean" : "hostile"; }

std::vector<uint64_t> message_sizes(uint64_t largest) {
  std::vector<uint64_t> sizes;
  for (int k = 0; k <= 26; ++k) {
    if (k >= 2) sizes.push_back((uint64_t{1} << k) - 1);
    sizes.push_back(uint64_t{1} << k);
  }
  std::erase_if(sizes, [largest](uint64_t size) { return size > largest; });
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<uint64_t> message_sizes(Operation operation, uint64_t largest) {
  if (workload::is_of_word(operation)) return {workload::kWordOctets};
  return message_sizes(largest);
}

Status run_campaign(uint64_t largest, uint64_t seed, Campaign& campaign) {
  size_t wanted = 0;
  for (const Wire wire : {Wire::Clean, Wire::Hostile}) {
    WireCampaign wire_campaign(wire, seed, campaign);
    if (Status status = wire_campaign.open(); !status) return status;
    for (const Operation op : kOperations) {
      const std::vector<uint64_t> sizes = message_sizes(op, largest);
      wanted += sizes.size();
      if (Status status = wire_campaign.run_operation(op, sizes); !status) return status;
    }
  }
  campaign.complete = campaign.runs.size() == wanted;
  return {};
}

}  // namespace rnic::demo
