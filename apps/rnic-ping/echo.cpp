#include "rnic-ping/echo.hpp"

#include <algorithm>
#include <utility>

namespace rnic::ping {

namespace {

Status ended(const Completion& done) {
  return tl::unexpected(Error{ErrorCode::Reset, std::string(to_string(done.opcode)) +
                                                    " completed with " + to_string(done.status)});
}

}  // namespace

Result<std::unique_ptr<workload::Session>> Echo::welcome(Device device,
                                                         const RequestHandle& request) {
  auto echo = std::make_unique<Echo>();
  Status status = echo->station_.open(std::move(device), kMaxSize);
  if (status) status = echo->station_.post_receive();
  const auto offer = workload::encode(echo->station_.word());
  if (status) status = echo->station_.end().qp.accept(request, offer);
  if (!status) return tl::unexpected(status.error());
  return echo;
}

Status Echo::step() {
  Completion done;
  if (station_.end().receive_cq.poll({&done, 1}) == 1) {
    if (done.status != CompletionStatus::Success) return ended(done);
    ++heard_;
    if (Status status = station_.post_receive(); !status) return status;
    if (Status status = answer(done); !status) return status;
  }
  if (station_.end().send_cq.poll({&done, 1}) == 0) return {};
  return done.status == CompletionStatus::Success ? Status{} : ended(done);
}

Status Echo::answer(const Completion& came) {
  if (came.has_immediate) return station_.end().qp.post_immediate(0, came.immediate);
  std::copy_n(station_.in().begin(), came.length, station_.out().begin());
  return station_.post_send(0, came.length);
}

}  // namespace rnic::ping
