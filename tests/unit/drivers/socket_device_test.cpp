// Two devices over sockets of the system: MPA, DDP and RDMAP as they are, on another transport.

#include "on_sockets.hpp"

namespace rnic::device {

TEST_F(OnSockets, WriteReadAndAtomic) {
  connect();
  std::vector<uint8_t> source(200'000), sink(200'000), back(200'000), word(8);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const mem::Stag a = add(0, source, kRights), c = add(0, back, kRights), d = add(0, word, kRights);
  const mem::Stag b = add(1, sink, kRights);
  SendRequest write = work(Opcode::Write, source, a);
  write.remote = {b.value, reinterpret_cast<uint64_t>(sink.data())};
  SendRequest read = work(Opcode::Read, back, c);
  read.remote = {b.value, write.remote.offset};
  SendRequest atomic = work(Opcode::FetchAdd, word, d);
  atomic.remote = {b.value, write.remote.offset};
  atomic.atomic.data = 1;
  for (const SendRequest& each : {write, read, atomic}) {
    ASSERT_EQ(qps_[0][0]->post_send(each), PostResult::Ok);
    Completion done;
    ASSERT_TRUE(completed(0, done));
    EXPECT_EQ(done.status, CompletionStatus::Success);
  }
  EXPECT_EQ(back, source);
  EXPECT_NE(sink, source);  // one was added
  EXPECT_GT(devices_[0]->mpa_counters().markers_out, 0u);
  ASSERT_TRUE(devices_[0]->disconnect(*qps_[0][0]).has_value());
  ASSERT_TRUE(event<event::PeerClosed>(1));
  ASSERT_TRUE(devices_[1]->disconnect(*qps_[1][0]).has_value());
  ASSERT_TRUE(run_until([&] { return devices_[0]->quiescent() && devices_[1]->quiescent(); }));
  EXPECT_TRUE(transports_[0]->quiescent() && transports_[1]->quiescent());
}

// DDP-5.4-04, RDMAP-5.5-04: a Write completes when the LLP has taken it, whether or not the peer
// looks; one that the LLP has not taken does not complete.
TEST_F(OnSockets, CompletionIsTheSystemsPromise) {
  connect();
  std::vector<uint8_t> small(1000, 0x5a), large(32u << 20, 0xa5), sink(32u << 20);
  const mem::Stag a = add(0, small, kRights), c = add(0, large, kRights);
  const mem::Stag b = add(1, sink, kRights);
  for (std::vector<uint8_t>* source : {&small, &large}) {
    SendRequest write = work(Opcode::Write, *source, source == &small ? a : c);
    write.remote = {b.value, reinterpret_cast<uint64_t>(sink.data())};
    ASSERT_EQ(qps_[0][0]->post_send(write), PostResult::Ok);
  }
  Completion done;
  ASSERT_TRUE(completed(0, done, 0));
  EXPECT_EQ(sink[0], 0);  // the peer has not been polled
  ASSERT_TRUE(run_until([&] { return transports_[0]->counters().send_waits != 0; }, 0));
  for (int i = 0; i < 100; ++i) devices_[0]->poll(now_);
  EXPECT_EQ(cqs_[0]->poll({&done, 1}), 0u);
  ASSERT_TRUE(completed(0, done));
  ASSERT_TRUE(run_until([&] { return sink == large; }));
}

class ShortClose : public OnSockets {
 protected:
  static socket::Config impatient() {
    socket::Config config = sockets();
    config.close_timeout = std::chrono::milliseconds(2);
    return config;
  }
  ShortClose() : OnSockets(1, impatient()) {}
};

// DDP-6.2.1-03: behind our FIN the peer's half lives for as long as it is used; then
// the time-out ends it.
TEST_F(ShortClose, TheOtherHalfGoesOn_MPA_7_2_01) {
  connect();
  std::vector<uint8_t> source(20'000, 7), sink(20'000);
  const mem::Stag a = add(1, source, kRights), b = add(0, sink, kRights);
  std::vector<uint8_t> there(20'000, 7), here(20'000);
  const mem::Stag c = add(0, there, kRights), d = add(1, here, kRights);
  SendRequest first = work(Opcode::Write, there, c);
  first.remote = {d.value, reinterpret_cast<uint64_t>(here.data())};
  ASSERT_EQ(qps_[0][0]->post_send(first), PostResult::Ok);
  ASSERT_TRUE(run_until([&] { return here == there; }));
  ASSERT_TRUE(devices_[0]->disconnect(*qps_[0][0]).has_value());
  ASSERT_TRUE(event<event::PeerClosed>(1));
  const base::Now begun = now_;
  for (int i = 0; now_ - begun < std::chrono::milliseconds(10); ++i) {
    SendRequest write = work(Opcode::Write, source, a);
    write.remote = {b.value, reinterpret_cast<uint64_t>(sink.data())};
    sink.assign(sink.size(), 0);
    ASSERT_EQ(qps_[1][0]->post_send(write), PostResult::Ok) << i;
    Completion done;
    ASSERT_TRUE(completed(1, done));
    ASSERT_EQ(done.status, CompletionStatus::Success) << i;
    ASSERT_TRUE(run_until([&] { return sink == source; })) << i;
    now_ += std::chrono::microseconds(100);
  }
  EXPECT_EQ(transports_[0]->counters().timed_out, 0u);
  now_ += std::chrono::milliseconds(3);
  ASSERT_TRUE(event<event::Disconnected>(0));
  EXPECT_EQ(transports_[0]->counters().timed_out, 1u);
}

// A peer without the right is told by Terminate, as over any transport.
TEST_F(OnSockets, TerminateNamesTheFault) {
  connect();
  std::vector<uint8_t> source(64), sink(64);
  const mem::Stag a = add(0, source, kRights);
  static_cast<void>(add(1, sink, Access::LocalRead));
  SendRequest write = work(Opcode::Write, source, a);
  write.remote.stag = 0x12345678;
  ASSERT_EQ(qps_[0][0]->post_send(write), PostResult::Ok);
  const auto told = event<event::TerminateReceived>(0);
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->detail.empty());
  ASSERT_TRUE(event<event::Disconnected>(0));
}

namespace {

DeviceConfig with_tuf(bool markers = true) {
  DeviceConfig config;
  config.framing = Framing::Tuf;
  config.tuf.markers_receive = markers;
  config.tuf.middlebox_limit = 1;
  return config;
}

class TufOnSockets : public OnSockets {
 protected:
  TufOnSockets() : OnSockets(1, sockets(), with_tuf(), with_tuf()) {}
};

class TufWithoutMarkers : public OnSockets {
 protected:
  TufWithoutMarkers() : OnSockets(1, sockets(), with_tuf(false), with_tuf(false)) {}
};

// Marker mode both ways, and no suspicion of a middlebox, however the reads fall.
TEST_F(TufOnSockets, MarkerModeOnly_TUF_2_02) {
  connect();
  std::vector<uint8_t> source(3u << 20), sink(3u << 20), back(3u << 20);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 5 + i / 253);
  const mem::Stag a = add(0, source, kRights), c = add(0, back, kRights);
  const mem::Stag b = add(1, sink, kRights);
  SendRequest write = work(Opcode::Write, source, a);
  SendRequest read = work(Opcode::Read, back, c);
  for (SendRequest* each : {&write, &read}) {
    each->remote.stag = b.value;
    each->remote.offset = reinterpret_cast<uint64_t>(sink.data());
    ASSERT_EQ(qps_[0][0]->post_send(*each), PostResult::Ok);
    Completion done;
    ASSERT_TRUE(completed(0, done));
    EXPECT_EQ(done.status, CompletionStatus::Success);
  }
  EXPECT_EQ(sink, source);
  EXPECT_EQ(back, source);
  for (const auto& device : devices_) {
    const tuf::Counters& counters = device->tuf_counters();
    EXPECT_EQ(counters.middlebox_suspected, 0u);
    EXPECT_EQ(counters.aligned_segments_in + counters.unaligned_segments_in, 0u);
    EXPECT_EQ(counters.frames_out, 0u);
    EXPECT_GT(counters.markers_out, 1000u);
  }
}

// Asked for a mode that does not exist here, a device says so at once.
TEST_F(TufWithoutMarkers, IsRefused) {
  const auto connected =
      devices_[0]->connect(*qps_[0][0], {IpAddress::v4(0x7f000001), 1}, {}, now_);
  const auto listening = devices_[1]->listen(7000);
  ASSERT_FALSE(connected.has_value());
  ASSERT_FALSE(listening.has_value());
  for (const Error& error : {connected.error(), listening.error()}) {
    EXPECT_EQ(error.code, ErrorCode::Unsupported);
    EXPECT_NE(error.message.find("tuf.markers = true"), std::string::npos);
  }
  ConnectOptions mpa;
  mpa.framing = Framing::Mpa;
  EXPECT_TRUE(
      devices_[0]->connect(*qps_[0][0], {IpAddress::v4(0x7f000001), 1}, {}, now_, mpa).has_value());
}

TEST_F(OnSockets, FramedStreamsAreRefused) {
  const auto refused = devices_[0]->connect_framed({IpAddress::v4(0x7f000001), 1}, {}, {}, now_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_NE(refused.error().message.find("no framed streams"), std::string::npos);
  EXPECT_FALSE(devices_[0]->listen_framed({{}, 7000}, 1, {}, {}).has_value());
}

TEST_F(OnSockets, StreamingSocketsAreRefused) {
  const auto refused = devices_[0]->connect_stream({IpAddress::v4(0x7f000001), 1}, {}, now_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_FALSE(devices_[0]->listen_stream({{}, 7000}, 1).has_value());
}

}  // namespace
}  // namespace rnic::device
