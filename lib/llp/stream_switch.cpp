#include "llp/stream_switch.hpp"

#include <utility>

namespace rnic::llp {

void StreamSwitch::begin(Stream& stream, StreamUser& first, uint64_t pulled) {
  RNIC_CHECK(count_ == 0);
  stream_ = &stream;
  parts_[count_++] = {&first, 0, 0};
  pulled_ = pulled;
  stream.set_user(*this);
}

void StreamSwitch::push(StreamUser& next, uint64_t sent_from, uint64_t received_from,
                        base::Now now) {
  RNIC_CHECK(count_ != 0 && count_ < kMaxUsers);
  const Part& before = parts_[count_ - 1];
  RNIC_CHECK(sent_from >= before.sent_from && received_from >= before.received_from);
  parts_[count_++] = {&next, sent_from, received_from};
  if (finished_) next.peer_finished(now);
}

void StreamSwitch::pass_on(base::Range range, base::ByteView octets, bool in_order, base::Now now) {
  if (current().inspect(range, octets, now) != InspectVerdict::Accept) return stream_->abort();
  current().place(range, octets, in_order, now);
}

StreamUser& StreamSwitch::sender(uint64_t offset) const {
  uint32_t i = count_ - 1;
  while (i != 0 && offset < parts_[i].sent_from) --i;
  return *parts_[i].user;
}

void StreamSwitch::established(uint32_t emss, base::Now now) { current().established(emss, now); }

Pulled StreamSwitch::pull(uint32_t n, uint64_t offset, Frame& out, base::Now now) {
  out.keep_to_one();
  const Pulled pulled = sender(offset).pull(n, offset, out, now);
  pulled_ = offset + pulled.length;
  return pulled;
}

bool StreamSwitch::rebuild(const RecordTag& tag, uint64_t offset, uint32_t length, Frame& out) {
  return sender(offset).rebuild(tag, offset, length, out);
}

void StreamSwitch::released(const RecordTag& tag, uint64_t end_offset) {
  sender(end_offset - 1).released(tag, end_offset);
}

InspectVerdict StreamSwitch::inspect(base::Range range, base::ByteView octets, base::Now now) {
  return current().inspect(range, octets, now);
}

void StreamSwitch::place(base::Range range, base::ByteView octets, bool in_order, base::Now now) {
  const uint32_t users = count_;
  current().place(range, octets, in_order, now);
  if (count_ == users) return;
  // The call has added a user: the start frame ends within these octets, and the octets behind it
  // are the next user's.
  const base::Range rest{parts_[count_ - 1].received_from, range.end};
  if (rest.begin < rest.end) {
    pass_on(rest, octets.subspan(rest.begin - range.begin), in_order, now);
  }
}

void StreamSwitch::ordered(uint64_t offset, base::Now now) {
  const uint32_t users = count_;
  current().ordered(offset, now);
  if (count_ != users) current().ordered(offset, now);
}

bool StreamSwitch::all_fits(uint32_t octets) const {
  // Octets that earlier users have not sent yet go out before those of the latest user.
  const uint64_t from = parts_[count_ - 1].sent_from;
  const uint64_t ahead = from > pulled_ ? from - pulled_ : 0;
  return ahead <= octets && current().all_fits(octets - static_cast<uint32_t>(ahead));
}

void StreamSwitch::peer_finished(base::Now now) {
  finished_ = true;
  current().peer_finished(now);
}

void StreamSwitch::ended(StreamEnd how, base::Now now) {
  // A user that has two parts is called once, and the first user, which owns the stream, is called
  // last.
  StreamUser& first = *parts_[0].user;
  for (uint32_t i = std::exchange(count_, 0u); i-- > 1;) {
    if (parts_[i].user != &first) parts_[i].user->ended(how, now);
  }
  first.ended(how, now);
}

}  // namespace rnic::llp
