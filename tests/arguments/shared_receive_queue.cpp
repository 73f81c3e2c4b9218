// shared_receive_queue.hpp.

#include "values.hpp"

namespace rnic::arguments {

namespace {

void fill(World& w, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) must(w.srq->post_receive({.id = i}));
}

}  // namespace

void add_shared_receive_queue(Table& table) {
  const auto outside = [](uint32_t depth) {
    return wrong({"resize", std::to_string(depth), "limits.max_work_depth (64)"});
  };
  const auto resize = [](World& w, uint32_t depth) { return w.srq->resize(depth); };
  table.row("SharedReceiveQueue::resize depth", with_srq, resize,
            up_to<uint32_t>(64, outside(65), outside(0)));
  const auto posted = [](World& w) {
    with_srq(w);
    fill(w, 4);
  };
  table.row("SharedReceiveQueue::resize depth", posted, resize,
            Values<uint32_t>{value<uint32_t>(Class::AtLimit, "as many as are posted", 4),
                             value<uint32_t>(Class::WrongState, "fewer than are posted", 3,
                                             refused(ErrorCode::WrongState, {"4 receives", "3"}))});
  table.row(
      "SharedReceiveQueue::arm_limit posted", with_srq,
      [](World& w, uint32_t n) { return w.srq->arm_limit(n); }, whole<uint32_t>());
  table.row(
      "SharedReceiveQueue::arm_high_water in_progress", with_srq,
      [](World& w, uint32_t n) { return w.srq->arm_high_water(n); }, whole<uint32_t>());
  const auto request = [](uint32_t pieces) {
    ReceiveRequest out{.id = UINT64_MAX};
    while (out.sges.size() < pieces) out.sges.push_back({});
    return out;
  };
  const Values<ReceiveRequest> requests = {
      value(Class::AtLimit, ".id most, .sges 2", request(2)),
      value(Class::Beyond, ".sges 3", request(3), wrong({"too many", "made for 2"})),
      value(Class::Beyond, ".sges 17", request(17), wrong({"too many", "made for 2"})),
      value(Class::Empty, "nothing", ReceiveRequest{})};
  const auto post = [](World& w, const ReceiveRequest& r) { return w.srq->post_receive(r); };
  table.row("SharedReceiveQueue::post_receive request", with_srq, post, requests);
  const auto full = [](World& w) {
    with_srq(w);
    fill(w, 16);
  };
  table.row("SharedReceiveQueue::post_receive request", full, post,
            Values<ReceiveRequest>{
                value(Class::Beyond, "one more than its depth", ReceiveRequest{},
                      refused(ErrorCode::ResourceExhausted, {"receive queue is full (16"}))});
  const auto used = [](World& w) {
    with_srq(w);
    w.qp.emplace(must(w.pd->create_qp(w.a.cq, w.a.cq, small(&*w.srq))));
  };
  table.row(
      "SharedReceiveQueue::destroy this", used,
      [](World&, SharedReceiveQueue* srq) { return srq->destroy(); },
      Values<SharedReceiveQueue*>{{Class::WrongState, "with a queue pair",
                                   [](World& w) { return &*w.srq; },
                                   refused(ErrorCode::WrongState, {"1 queue pair:"})}});
}

}  // namespace rnic::arguments
