#include "rnic/connection.hpp"

#include "rnic/device.hpp"

namespace rnic::nic {

Connection::Connection(Device& device, mpa::Role role, const mpa::Config& config,
                       base::ByteView private_data)
    : device_(device),
      role_(role),
      session_(config, role, device.hold_store(), device.mpa_counters(), *this, private_data) {
  start_timer.owner = this;
}

void Connection::bind(QueuePair& qp) {
  RNIC_CHECK(qp_ == nullptr);
  qp_ = &qp;
  qp.connection = handle;
  qp.used = true;
  session_.bind(qp.endpoint().framing_user());
}

void Connection::accept(base::ByteView private_data, base::Now now) {
  state_ = ConnectionState::Answered;
  session_.accept(private_data, now);
}

void Connection::reject(base::ByteView private_data, base::Now now) {
  state_ = ConnectionState::Answered;
  session_.reject(private_data, now);
}

void Connection::request_received(base::ByteView private_data, base::Now) {
  state_ = ConnectionState::Requested;
  device_.request_received(*this, private_data);
}

void Connection::started(const mpa::Negotiated&, base::ByteView private_data, base::Now) {
  state_ = ConnectionState::Running;
  device_.stop_start_timer(*this);
  RNIC_CHECK(qp_ != nullptr);
  qp_->endpoint().bind(session_);
  device_.connection_started(*this, private_data);
}

void Connection::start_failed(mpa::StartFailure why, base::ByteView private_data, base::Now) {
  const ConnectionState before = state_;
  state_ = ConnectionState::Failed;
  device_.stop_start_timer(*this);
  device_.start_failed(*this, before, why, private_data);
}

void Connection::stream_ended(llp::StreamEnd, base::Now) {
  state_ = ConnectionState::Ended;
  stream = nullptr;
  device_.connection_ended(*this);
}

}  // namespace rnic::nic
