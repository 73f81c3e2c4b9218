#include "rnic-run/meeting.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "rnic-run/adapter.hpp"
#include "rnic-run/completions.hpp"
#include "rnic-run/face.hpp"
#include "rnic-run/queue_pairs.hpp"

namespace rnic::run {

namespace {

// Anybody may ask for a queue pair before its program has named the peer: that comes again where
// there is no room for it.
constexpr size_t kMostHeld = 4;
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr std::chrono::milliseconds kFarewell{200};

}  // namespace

Meeting::Meeting(QueuePairs& owner, uint32_t qpn, const ibv_qp_cap& made_with)
    : owner_(owner),
      shown_(std::make_shared<ShownPair>(qpn)),
      pause_(kFirstPause),
      early_(std::max(1u, made_with.max_send_wr), std::max(1u, made_with.max_recv_wr)) {
  held_.reserve(kMostHeld);
  if (gives_receipts()) {
    shown_->receipts = std::make_unique<Receipts>(std::max(1u, made_with.max_send_wr));
  }
}

bool Meeting::gives_receipts() {
  // A port that has frames tells of a Write when the peer's TCP has acknowledged it.
  return is_roce() && Adapter::get()->device().port() == "socket";
}

// ---- The program's calls ----

void Meeting::appoint(const Appointment& appointment) {
  with_ = appointment;
  step_ = Step::Waiting;
  pause_ = kFirstPause;
  if (connects()) return ask();
  answer_one_of_those_held();
}

void Meeting::fail() {
  shown_->failed = true;
  step_ = Step::Done;
  // Sends that are complete may be in the system yet, which would drop them with the connection.
  const bool may_have_sent = phase_ == Phase::Met && gives_receipts();
  (void)(may_have_sent ? owner_.pair().drain(kFarewell)
                       : owner_.pair().modify({.state = QueuePairState::Error}));
  flush_early(IBV_WC_WR_FLUSH_ERR);
}

void Meeting::forget() {
  step_ = Step::Unnamed;
  own_psn_.reset();
  terminated_ = false;
  if (shown_->receipts != nullptr) shown_->receipts->clear();
  const std::lock_guard posting(posting_);
  early_.clear();
  patient_.reset();
  shown_->failed = false;
  phase_ = Phase::Early;
}

void Meeting::leave() {
  for (const Held& each : held_) (void)Adapter::get()->device().reject(each.request);
  held_.clear();
  // What the peer was sent last is on its way: it is closed in order, and not reset.
  if (phase_ == Phase::Met) (void)owner_.pair().disconnect();
}

Meeting::Posted Meeting::post(const SendRequest& request) {
  // In full operation there is no lock of ours.
  if (phase_.load(std::memory_order_acquire) == Phase::Met) return {to_device(request)};
  const std::lock_guard posting(posting_);
  if (phase_ == Phase::Lost) return {post_into_the_void(request)};
  if (phase_ != Phase::Early) return {to_device(request)};
  const int refused = early_.add(request);
  const bool first = refused == 0 && !patient_;
  if (first) patient_ = Clock::now() + kPatience;
  return {refused, first};
}

int Meeting::post(const ReceiveRequest& request) {
  if (phase_.load(std::memory_order_acquire) == Phase::Met) return to_device(request);
  const std::lock_guard posting(posting_);
  return phase_ == Phase::Early ? early_.add(request) : to_device(request);
}

int Meeting::to_device(const SendRequest& request) {
  if (shown_->receipts == nullptr) {
    const Status posted = owner_.pair().post_send(request);
    return posted ? 0 : as_errno(posted.error());
  }
  try {
    return shown_->receipts->post(owner_.pair(), request);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int Meeting::to_device(const ReceiveRequest& request) {
  const Status posted = owner_.pair().post_receive(request);
  return posted ? 0 : as_errno(posted.error());
}

/// Over InfiniBand a side that has gone is noticed when a request to it is not acknowledged.
int Meeting::post_into_the_void(const SendRequest& request) {
  phase_ = Phase::Over;
  complete(request.id, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
  shown_->failed = true;
  owner_.wake();
  return 0;
}

// ---- What happens on the device ----

Introduction Meeting::own() const {
  return {.from = with_.self.qpn, .to = with_.peer.qpn, .psn = with_.expected_psn};
}

bool Meeting::is_expected(const Held& held) const {
  return held.address == with_.peer.address && held.from.from == with_.peer.qpn &&
         (!own_psn_ || held.from.psn == *own_psn_);
}

bool Meeting::is_from_peer(std::span<const uint8_t> answer) const {
  const auto from = Introduction::parse(answer);
  return from && from->to == with_.self.qpn && is_expected({{}, with_.peer.address, *from});
}

void Meeting::hear(const event::ConnectRequest& request, const Introduction& from) {
  const Held held{request.request, request.remote.address, from};
  const bool waits = step_ == Step::Waiting && !connects();
  if (waits && is_expected(held)) return answer(held);
  const bool may_wait = step_ == Step::Unnamed || step_ == Step::Answering || step_ == Step::Ended;
  if (may_wait && held_.size() < kMostHeld) {
    held_.push_back(held);
    return;
  }
  if (waits) {
    refused(0, "a queue pair was asked for a connection by another one than its peer: refused");
  }
  (void)Adapter::get()->device().reject(request.request);
}

bool Meeting::withdraw(const RequestHandle& request) {
  return std::erase_if(held_, [&](const Held& each) { return each.request == request; }) != 0;
}

ConnectOptions Meeting::options() const {
  ConnectOptions out;
  // Receipts are Reads, too, whatever the program has thought of: then the queue pair's own number
  // stands.
  if (shown_->receipts == nullptr) {
    const auto made_with = owner_.pair().query();
    if (made_with) out.ird = std::clamp(with_.reads_served, 1u, made_with->ird);
  }
  return out;
}

void Meeting::ask() {
  ConnectOptions how = options();
  how.start.revision = 2;
  how.start.fall_back = false;
  // The peer is softrnic, which has its receiver before it answers.
  how.start.first_fpdu_delay = std::chrono::nanoseconds{0};
  how.peer_to_peer = true;
  how.source.address = with_.self.address;
  const Status begun = owner_.pair().connect(with_.peer.endpoint(), own().octets(), how);
  if (begun) {
    step_ = Step::Asking;
    return;
  }
  (void)as_errno(begun.error());  // tells why, where that is asked for
  try_again_later();
}

void Meeting::answer(const Held& held) {
  const Status begun = owner_.pair().accept(held.request, own().octets(), options());
  if (begun) {
    step_ = Step::Answering;
    return;
  }
  // The peer comes again when it is told so, and would wait in vain for an answer.
  (void)as_errno(begun.error());
  (void)Adapter::get()->device().reject(held.request);
}

/// The peer may have asked before this side's program had named it.
void Meeting::answer_one_of_those_held() {
  while (!held_.empty()) {
    const Held each = held_.front();
    held_.erase(held_.begin());
    if (step_ == Step::Waiting && is_expected(each)) {
      answer(each);
    } else {
      (void)Adapter::get()->device().reject(each.request);
    }
  }
}

void Meeting::established(std::span<const uint8_t> answer) {
  if (connects() && !is_from_peer(answer)) {
    refused(0, "somebody else than its peer has answered a queue pair: it asks again");
    // The step stays: Disconnected follows, which makes it an attempt that has failed.
    (void)owner_.pair().modify({.state = QueuePairState::Error});
    return;
  }
  step_ = Step::Done;
  const std::lock_guard posting(posting_);
  QueuePair& pair = owner_.pair();
  early_.hand_over(
      [&](const ReceiveRequest& each) {
        if (!pair.post_receive(each)) complete(each.id, IBV_WC_RECV, IBV_WC_LOC_QP_OP_ERR);
      },
      [&](const SendRequest& each) {
        if (to_device(each) != 0) complete(each.id, IBV_WC_SEND, IBV_WC_LOC_QP_OP_ERR);
      });
  patient_.reset();
  phase_ = Phase::Met;
}

void Meeting::ended() {
  if (step_ == Step::Asking || step_ == Step::Answering) {
    step_ = Step::Ended;
    return try_again_later();
  }
  const std::lock_guard posting(posting_);
  if (phase_ == Phase::Met) phase_ = has_failed() ? Phase::Over : Phase::Lost;
}

void Meeting::try_again_later() {
  next_attempt_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

std::optional<Meeting::Clock::time_point> Meeting::look(Clock::time_point now) {
  if (step_ == Step::Ended && now >= next_attempt_) {
    if (owner_.renew() != 0) {
      try_again_later();
    } else {
      step_ = Step::Waiting;
      if (!connects()) answer_one_of_those_held();
    }
  }
  if (step_ == Step::Waiting && connects() && now >= next_attempt_) ask();
  std::optional<Clock::time_point> next;
  const bool attempts = step_ == Step::Ended || (step_ == Step::Waiting && connects());
  if (attempts) next = next_attempt_;
  std::optional<Clock::time_point> patient;
  {
    const std::lock_guard posting(posting_);
    patient = patient_;
  }
  if (!patient) return next;
  if (now >= *patient) {
    give_up();
    return std::nullopt;
  }
  return next ? std::min(*next, *patient) : *patient;
}

/// Over InfiniBand a request that nobody acknowledges ends so.
void Meeting::give_up() {
  refused(0, "a queue pair has found nobody at the GID and number that it was given");
  step_ = Step::Done;
  shown_->failed = true;
  (void)owner_.pair().modify({.state = QueuePairState::Error});
  flush_early(IBV_WC_RETRY_EXC_ERR);
}

/// Completes what waits; of the first Send it is told why.
void Meeting::flush_early(ibv_wc_status first_send) {
  const std::lock_guard posting(posting_);
  ibv_wc_status status = first_send;
  // The completions of the Sends are to be read first, as they tell why.
  std::vector<uint64_t> receives;
  early_.hand_over([&](const ReceiveRequest& each) { receives.push_back(each.id); },
                   [&](const SendRequest& each) {
                     complete(each.id, IBV_WC_SEND, std::exchange(status, IBV_WC_WR_FLUSH_ERR));
                   });
  for (const uint64_t id : receives) complete(id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
  patient_.reset();
  phase_ = Phase::Over;
  owner_.wake();
}

void Meeting::complete(uint64_t id, ibv_wc_opcode opcode, ibv_wc_status status) {
  owner_.add_completion(id, opcode, status);
}

}  // namespace rnic::run
