// verbs.hpp, CompletionQueue.

#include <thread>

#include "values.hpp"

namespace rnic::arguments {

void add_completion_queue(Table& table) {
  const auto outside = [](uint32_t depth) {
    return wrong({std::to_string(depth), "1..128", "limits.max_work_depth"});
  };
  table.row(
      "CompletionQueue::resize depth", two_ends,
      [](World& w, uint32_t depth) { return w.a.cq.resize(depth); },
      up_to<uint32_t>(128, outside(129), outside(0)));
  const auto waiting = [](World& w) {
    two_ends(w);
    must(w.a.qp.modify({.state = QueuePairState::Error}));
    for (int i = 0; i < 4; ++i) must(w.a.qp.post_write(1, {}, {}));
    // Threaded: until they are flushed.
    w.turn_until([&] { return must(w.a.cq.info()).waiting == 4; });
  };
  const Values<uint32_t> depths = {
      value<uint32_t>(Class::AtLimit, "as many as wait", 4),
      value<uint32_t>(Class::WrongState, "fewer than wait", 3,
                      refused(ErrorCode::WrongState, {"4 completions", "3", "poll it"}))};
  table.row(
      "CompletionQueue::resize depth", waiting,
      [](World& w, uint32_t depth) { return w.a.cq.resize(depth); }, depths);
  const auto fitting = [](World& w) {
    two_ends(w);
    w.cq.emplace(must(w.near().create_cq(16, {.fits_all = true})));
    w.qp.emplace(must(w.a.pd.create_qp(*w.cq, *w.cq, {.send_depth = 8, .receive_depth = 8})));
  };
  const Values<uint32_t> fits = {
      value<uint32_t>(Class::AtLimit, "all that can come", 16),
      value<uint32_t>(Class::WrongState, "less than can come", 15,
                      refused(ErrorCode::WrongState, {"16 completions", "15"}))};
  table.row(
      "CompletionQueue::resize depth", fitting,
      [](World& w, uint32_t depth) { return w.cq->resize(depth); }, fits);
  table.row(
      "CompletionQueue::moderate how", two_ends,
      [](World& w, const NotifyModeration& how) { return w.a.cq.moderate(how); }, moderations());
  const auto poll = [](World& w, size_t n) -> Status {
    std::vector<Completion> out(n);
    const uint32_t got = w.a.cq.poll(out);
    if (got == std::min<size_t>(n, 4)) return {};
    return tl::unexpected(Error{ErrorCode::NotFound, std::to_string(got)});
  };
  const Values<size_t> sizes = {value<size_t>(Class::AtLimit, "more than there are", 100'000),
                                value<size_t>(Class::AtLimit, "one", 1),
                                value<size_t>(Class::Empty, "nothing", 0)};
  table.row("CompletionQueue::poll out", waiting, poll, sizes);
  const Values<Notify> kinds = {
      value(Class::AtLimit, "Solicited", Notify::Solicited),
      value(Class::Illegal, "2", static_cast<Notify>(2), wrong({"arm", "Notify"})),
      value(Class::Illegal, "255", static_cast<Notify>(255), wrong({"arm", "Notify"}))};
  table.row(
      "CompletionQueue::arm what", two_ends, [](World& w, Notify what) { return w.a.cq.arm(what); },
      kinds);
  table.row(
      "CompletionQueue::destroy this", two_ends,
      [](World& w, CompletionQueue* cq) { return cq == nullptr ? Status{} : w.a.cq.destroy(); },
      Values<CompletionQueue*>{
          {Class::WrongState, "with a queue pair", [](World& w) { return &w.a.cq; },
           refused(ErrorCode::WrongState, {"2 send and receive queues", "destroy"})}});
}

}  // namespace rnic::arguments
