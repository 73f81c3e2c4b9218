// Values of the public API: their names, and where they come from.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "rnic/event.hpp"
#include "rnic/framed_stream.hpp"
#include "rnic/trace.hpp"
#include "verbs/streams.hpp"

namespace rnic::verbs {
namespace {

template <typename T>
std::string name_of(int number) {
  return to_string(static_cast<T>(number));
}

TEST(Names, OfWhatATraceTells) {
  const char* names[] = {"sent", "retransmitted",  "in order",  "placed out of order",
                         "held", "dropped by CRC", "delivered", "dropped on suspicion"};
  int number = 0;
  for (const char* name : names) EXPECT_EQ(name_of<TraceKind>(number++), name);
  EXPECT_EQ(name_of<TraceKind>(number), "unknown");
}

TEST(Names, OfStates) {
  EXPECT_STREQ(to_string(StreamState::Connecting), "connecting");
  EXPECT_STREQ(to_string(StreamState::Open), "open");
  EXPECT_STREQ(to_string(StreamState::Ended), "ended");
  EXPECT_EQ(name_of<StreamState>(3), "unknown");
}

TEST(Names, OfFramingModes) {
  EXPECT_STREQ(to_string(FramedReceiveMode::Plain), "plain");
  EXPECT_STREQ(to_string(FramedReceiveMode::Align), "alignment");
  EXPECT_STREQ(to_string(FramedReceiveMode::Markers), "markers");
  EXPECT_STREQ(to_string(FramedSendMode::Atomic), "atomic");
  EXPECT_EQ(name_of<FramedReceiveMode>(7), "unknown");
  EXPECT_EQ(name_of<FramedSendMode>(7), "unknown");
}

TEST(StreamFailure, EveryEndHasItsCodeAndItsPeer) {
  const struct {
    StreamEnd end;
    ErrorCode code;
    const char* message;
  } rows[] = {
      {StreamEnd::Closed, ErrorCode::WrongState,
       "the connection to 10.0.0.2:7 is closed: connect again"},
      {StreamEnd::PeerReset, ErrorCode::Reset,
       "10.0.0.2:7 has reset the connection: connect again"},
      {StreamEnd::TimedOut, ErrorCode::TimedOut,
       "10.0.0.2:7 does not answer: is it there, and is there a way to it?"},
      {StreamEnd::Refused, ErrorCode::Unreachable,
       "10.0.0.2:7 refuses connections: does a program listen?"},
      {StreamEnd::Unreachable, ErrorCode::Unreachable,
       "the network says that there is no way to 10.0.0.2:7: use another address"},
      {StreamEnd::Aborted, ErrorCode::Reset,
       "the connection to 10.0.0.2:7 was aborted by this side: connect again"},
  };
  for (const auto& row : rows) {
    const Error error = stream_failure(row.end, "10.0.0.2:7").value();
    EXPECT_EQ(error.code, row.code) << row.message;
    EXPECT_EQ(error.message, row.message);
  }
}

TEST(StreamOptionsMerged, WhatIsNotSaidStaysAsItIs) {
  tcp::ConnectionOptions before;
  before.keep_alive_idle = std::chrono::seconds(11);
  before.keep_alive_interval = std::chrono::seconds(12);
  before.user_timeout = std::chrono::seconds(13);
  using std::chrono::milliseconds;
  const tcp::ConnectionOptions after =
      merged(before, {.keep_alive_interval = milliseconds(1500)}).value();
  EXPECT_EQ(after.keep_alive_interval, std::chrono::milliseconds(1500));
  EXPECT_EQ(after.keep_alive_idle, std::chrono::seconds(11));
  EXPECT_EQ(after.user_timeout, std::chrono::seconds(13));
  EXPECT_EQ(merged(before, {.keep_alive_idle = milliseconds(1)})->keep_alive_interval,
            std::chrono::seconds(12));
  for (const milliseconds wrong :
       {milliseconds(-1), milliseconds(1ll << 32), milliseconds::max()}) {
    const auto refused = merged(before, {.user_timeout = wrong});
    ASSERT_FALSE(refused.has_value()) << wrong.count();
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(refused.error().message.find("user_timeout is "), std::string::npos);
  }
}

template <typename... Kinds>
std::set<std::string> names_of(std::variant<Kinds...>*) {
  return {to_string(Event(Kinds{}))...};
}

TEST(Names, EachEventHasItsOwn) {
  const std::set<std::string> names = names_of(static_cast<Event*>(nullptr));
  EXPECT_EQ(names.size(), std::variant_size_v<Event>) << "no two are alike";
  EXPECT_STREQ(to_string(Event(event::RequestWithdrawn{})), "request withdrawn");
}

TEST(Events, WhatAllOfThemSayIsReadWithoutKnowingWhich) {
  event::TerminateSent sent;
  sent.qp = 7;
  sent.detail = "a cause";
  Event event = sent;
  EXPECT_EQ(common(event).qp, 7u);
  common(event).qp = 8;
  EXPECT_EQ(std::get<event::TerminateSent>(event).qp, 8u);
  EXPECT_EQ(common(std::as_const(event)).detail, "a cause");
}

TEST(Faults, AreDescribedByTheNamesOfTheRfcs) {
  EXPECT_EQ(describe({FaultLayer::Ddp, 1, 1}),
            "layer DDP, type tagged buffer error, code 0x01 base or bounds violation");
  EXPECT_EQ(describe({FaultLayer::Rdmap, 0, 0}),
            "layer RDMAP, type local catastrophic error, code 0x00");
  EXPECT_EQ(describe({FaultLayer::Llp, 0, 9}), "layer LLP, type MPA error, code 0x09 (unknown)");
  EXPECT_EQ(code_name({FaultLayer::Rdmap, 1, 5}), nullptr) << "of type 2 only";
}

}  // namespace
}  // namespace rnic::verbs
