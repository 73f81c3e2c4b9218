#include "rnic-stream/conversation.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace rnic::stream {

namespace {

constexpr size_t kPiece = 65536;
constexpr uint32_t kPiecesPerStep = 16;

std::string line_of(uint64_t octets, uint32_t hash, bool right) {
  return std::to_string(octets) + " " + hex(hash) + (right ? " ok\n" : " bad\n");
}

std::span<const uint8_t> octets_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Conversation::Conversation(Stream stream, const Plan& plan)
    : stream_(std::move(stream)), plan_(plan) {
  outcome_.end = "open";
}

void Conversation::begin() {
  const Endpoint client = plan_.out == Way::Up ? stream_.local() : stream_.remote();
  const Way in = plan_.out == Way::Up ? Way::Down : Way::Up;
  content_out_.emplace(client.port, plan_.out);
  // An echo's octets come back as they went.
  content_in_.emplace(client.port, plan_.ping_pong ? plan_.out : in);
}

uint64_t Conversation::step() {
  if (outcome_.over) return 0;
  if (!content_out_) begin();
  const uint64_t moved = receive() + send();
  if (outcome_.over) return moved;
  if (plan_.reset_after && outcome_.sent + outcome_.received >= *plan_.reset_after) {
    stream_.abort();
    outcome_.verified = !difference_;
    end("");
    return moved;
  }
  finish_if_done();
  return moved;
}

uint64_t Conversation::receive() {
  uint64_t moved = 0;
  static thread_local std::array<uint8_t, kPiece> piece;
  for (uint32_t i = 0; i < kPiecesPerStep; ++i) {
    // An echo takes no more than it can give back.
    if (plan_.echoes && !pending_.empty()) break;
    const auto got = stream_.receive(piece);
    if (!got) {
      end(got.error().message);
      return moved;
    }
    if (*got == 0) break;
    moved += take(std::span(piece).first(*got));
  }
  return moved;
}

uint64_t Conversation::take(std::span<const uint8_t> octets) {
  if (plan_.expects_line) {
    line_.append(octets.begin(), octets.end());
    return octets.size();
  }
  if (plan_.verifies && !difference_) {
    difference_ = content_in_->first_difference(outcome_.received, octets);
  }
  if (plan_.hashes) hash_in_.add(octets);
  outcome_.received += octets.size();
  if (plan_.echoes) pending_.insert(pending_.end(), octets.begin(), octets.end());
  if (plan_.ping_pong && outcome_.received == outcome_.sent) {
    round_trips_.push_back(now_ns_ - message_at_ns_);
  }
  return octets.size();
}

uint64_t Conversation::send() {
  if (plan_.echoes || plan_.replies) return send_echo();
  if (!plan_.sends || stopped_) return 0;
  uint64_t moved = 0;
  for (uint32_t i = 0; i < kPiecesPerStep; ++i) {
    if (plan_.ping_pong && outcome_.received != outcome_.sent &&
        outcome_.sent % plan_.message == 0) {
      break;
    }
    const uint64_t in_message = plan_.message - outcome_.sent % plan_.message;
    const uint64_t n = std::min(plan_.octets - outcome_.sent, in_message);
    if (n == 0) break;
    const auto octets = content_out_->at(outcome_.sent, n);
    const auto taken = stream_.send(octets);
    if (!taken) {
      // The reason comes with what was received: the peer may have said why.
      stopped_ = true;
      if (stream_.state() != StreamState::Ended) end(taken.error().message);
      break;
    }
    if (*taken == 0) break;
    if (plan_.ping_pong && outcome_.sent % plan_.message == 0) message_at_ns_ = now_ns_;
    if (plan_.hashes) hash_out_.add(octets.first(*taken));
    outcome_.sent += *taken;
    moved += *taken;
  }
  return moved;
}

uint64_t Conversation::send_echo() {
  if (pending_from_ == pending_.size()) return 0;
  const auto taken = stream_.send(std::span(pending_).subspan(pending_from_));
  if (!taken) {
    end(taken.error().message);
    return 0;
  }
  pending_from_ += *taken;
  outcome_.sent += *taken;
  if (pending_from_ == pending_.size()) {
    pending_.clear();
    pending_from_ = 0;
  }
  return *taken;
}

void Conversation::reply() {
  const std::string line = line_of(outcome_.received, hash_in_.value(), !difference_);
  const auto octets = octets_of(line);
  pending_.assign(octets.begin(), octets.end());
  replied_ = true;
}

void Conversation::check_line() {
  const std::string wanted = line_of(outcome_.sent, hash_out_.value(), true);
  if (line_ == wanted) return;
  end("the peer answers \"" + line_.substr(0, line_.find('\n')) + "\", not \"" +
      wanted.substr(0, wanted.size() - 1) + "\"");
}

void Conversation::finish_if_done() {
  if (difference_) {
    end("octet " + std::to_string(*difference_) + " is not what was sent");
    return;
  }
  const bool peer_done = stream_.at_end();
  if (plan_.replies && peer_done && !replied_) reply();
  bool sent_all = pending_from_ == pending_.size();
  if (plan_.sends) sent_all = stopped_ || outcome_.sent == plan_.octets;
  if (plan_.ping_pong) sent_all = sent_all && outcome_.received == outcome_.sent;
  if (plan_.echoes || plan_.replies || !plan_.sends) sent_all = sent_all && peer_done;
  if (sent_all && !finished_) {
    finished_ = true;
    stream_.finish_sending();
  }
  if (!finished_ || !peer_done) {
    if (const auto how = stream_.how_ended(); how && *how != StreamEnd::Closed) {
      end(stream_.status().error().message);
    }
    return;
  }
  // TIME-WAIT and the like are the stack's; what was sent has to be there before.
  if (stream_.unacknowledged() != 0 && !stream_.how_ended()) return;
  if (plan_.expects_line) check_line();
  if (outcome_.over) return;
  outcome_.verified = true;
  end("");
}

void Conversation::stop() { stopped_ = true; }

void Conversation::abort(const std::string& why) {
  if (outcome_.over) return;
  stream_.abort();
  end(why);
}

void Conversation::end(std::string error) {
  outcome_.over = true;
  outcome_.error = std::move(error);
  if (!outcome_.error.empty()) outcome_.verified = false;
  outcome_.hash_sent = hash_out_.value();
  outcome_.hash_received = hash_in_.value();
  const auto how = stream_.how_ended();
  if (how)
    outcome_.end = to_string(*how);
  else if (finished_)
    outcome_.end = to_string(StreamEnd::Closed);
  else
    outcome_.end = to_string(StreamEnd::Aborted);
  stream_.close();
}

}  // namespace rnic::stream
