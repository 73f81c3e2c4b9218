#include "counts.hpp"

namespace rnic::arguments {

using starved::World;

namespace {

class Counter {
 public:
  explicit Counter(std::string whose) : whose_(std::move(whose)) {}

  template <typename T>
  void operator()(const char* name, T amount) {
    counts.emplace_back(whose_ + " " + name, static_cast<uint64_t>(amount));
  }
  void of(std::string whose) { whose_ = std::move(whose); }

  Counts counts;

 private:
  std::string whose_;
};

void add_device(Counter& add, Device& device) {
  add.of(device.name());
  const DeviceLimits has = starved::must(device.limits());
  add("qps", has.qps);
  add("cqs", has.cqs);
  add("srqs", has.srqs);
  add("pds", has.pds);
  add("regions", has.regions);
  add("connections", has.connections);
  add("consumers", has.consumers);
  add("registered_octets", has.registered_octets);
  add("pieces", has.pieces);
  add("cq_entries", has.cq_entries);
  add("total_reads", has.total_reads);
}

void add_consumer(Counter& add, const Consumer& consumer) {
  const auto info = consumer.info();
  if (!info) return;
  add.of("the consumer's");
  add("pds", info->used.pds);
  add("regions", info->used.regions);
  add("registered_octets", info->used.registered_octets);
  add("pieces", info->used.pieces);
  add("cqs", info->used.cqs);
  add("cq_entries", info->used.cq_entries);
  add("srqs", info->used.srqs);
  add("qps", info->used.qps);
  add("reads", info->used.reads);
  add("listeners", info->used.listeners);
  add("requests", info->used.requests);
}

void add_end(Counter& add, const char* whose, const starved::End& end) {
  add.of(whose);
  if (const auto cq = end.cq.info()) {
    add("completion queue's depth", cq->depth);
    add("completion queue's users", cq->users);
    add("completion queue's demand", cq->demand);
  }
  add("region's stag", end.region.stag());
  add("region's address", end.region.address());
  add("region's length", end.region.length());
  const auto qp = end.qp.query();
  if (!qp) return;
  add("number", qp->number);
  add("state", qp->state);
  add("ird", qp->ird);
  add("ord", qp->ord);
  add("answers_close", qp->answers_close);
  add("connections", starved::must(end.qp.info()).counters.connections);
}

void add_streams(Counter& add, const World& w) {
  add.of("near stream");
  add("valid", w.near_stream.is_valid());
  add("state", w.near_stream.state());
  add("converted", w.near_stream.is_converted());
  add("unacknowledged", w.near_stream.unacknowledged());
  add("writable", w.near_stream.writable());
  for (const bool near : {true, false}) {
    const FramedStream& framed = near ? w.near_framed : w.far_framed;
    add.of(near ? "near framed" : "far framed");
    add("valid", framed.is_valid());
    add("state", framed.state());
    add("readable", framed.readable());
    add("send_mode", framed.send_mode());
    add("receive_mode", framed.receive_mode());
    add("send_interval", framed.send_interval());
    add("receive_interval", framed.receive_interval());
    add("frame_limit", framed.frame_limit());
  }
}

}  // namespace

Counts counts(World& w) {
  Counter add("");
  add_device(add, w.near());
  add_device(add, w.far());
  if (w.consumer) add_consumer(add, *w.consumer);
  add_end(add, "a", w.a);
  add_end(add, "b", w.b);
  add_streams(add, w);
  add.of("the world's");
  if (w.window) add("window", w.window->stag());
  if (w.region) add("region", w.region->stag());
  if (w.qp) add("queue pair", w.qp->number());
  if (w.cq) add("completion queue", w.cq->number());
  add("reserved port", w.reserved_port.local().port);
  if (w.srq) {
    if (const auto srq = w.srq->info()) {
      add("receives posted", srq->posted);
      add("receive depth", srq->depth);
      add("limit", srq->limit);
      add("high water", srq->high_water);
    }
  }
  return std::move(add.counts);
}

std::string difference(const Counts& before, const Counts& now) {
  std::string lines;
  if (before.size() != now.size()) lines += "other objects than before\n";
  for (size_t i = 0; i < before.size() && i < now.size(); ++i) {
    if (before[i] == now[i]) continue;
    lines += now[i].first + ": " + std::to_string(now[i].second) + " and before " +
             std::to_string(before[i].second) + "\n";
  }
  return lines;
}

}  // namespace rnic::arguments
