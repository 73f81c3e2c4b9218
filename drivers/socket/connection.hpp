/// \file
/// One connection over a socket of the system.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "llp/transport.hpp"
#include "socket/config.hpp"
#include "socket/counters.hpp"
#include "socket/system.hpp"

namespace rnic::socket {

class Transport;

/// What was pulled and the system has not taken yet. All of it is taken from the user at once, and
/// nothing more until the system has it: a record is written once and never again.
class Unsent {
 public:
  static constexpr uint32_t kMaxRecords = 256;
  static constexpr uint32_t kMaxWrites = 64;

  struct Record {
    llp::RecordTag tag;
    uint64_t end = 0;  ///< stream offset
    uint32_t length = 0;
  };
  /// Octets that one call gives to the system, begun where a segment shall begin.
  struct Write {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  explicit Unsent(uint32_t octets) : octets_(new uint8_t[octets]), size_(octets) {
    records_.reserve(kMaxRecords);
  }

  [[nodiscard]] bool empty() const { return taken_ == end_; }
  [[nodiscard]] uint32_t room() const { return size_ - end_; }
  [[nodiscard]] uint8_t* tail() { return octets_.get() + end_; }
  [[nodiscard]] bool takes_records() const { return records_.size() < kMaxRecords; }
  [[nodiscard]] bool takes_writes() const { return write_count_ < kMaxWrites; }

  void add_record(const llp::RecordTag& tag, uint64_t end, uint32_t length) {
    records_.push_back({tag, end, length});
  }
  /// The octets at tail() count. \param joined they follow in the segments of those before
  void add_octets(uint32_t n, bool joined);

  /// The writes that are left, the first one from where it stands.
  [[nodiscard]] uint32_t writes(std::array<Write, kMaxWrites>& out) const;
  [[nodiscard]] const uint8_t* at(uint32_t position) const { return octets_.get() + position; }
  void taken(uint32_t n);
  /// The next record of which the system has every octet below `offset`, or nullptr.
  const Record* release(uint64_t offset);

 private:
  std::unique_ptr<uint8_t[]> octets_;
  uint32_t size_;
  uint32_t taken_ = 0;
  uint32_t end_ = 0;
  std::vector<Record> records_;
  uint32_t released_ = 0;
  std::array<Write, kMaxWrites> writes_{};
  uint32_t write_count_ = 0;
  uint32_t first_write_ = 0;
};

class Connection final : public llp::Stream {
 public:
  enum class State : uint8_t { Connecting, Open };

  Connection(Transport& transport, System& system, const Config& config, Counters& counters,
             Descriptor&& descriptor, const Endpoint& remote, State state);

  // llp::Stream
  [[nodiscard]] llp::StreamTraits traits() const override {
    return {.can_drop = false,
            .out_of_order = false,
            .atomic_records = false,
            .release_on_ack = false,
            .emss_exact = false,
            .shows_segments = false};
  }
  [[nodiscard]] uint32_t emss() const override { return emss_; }
  [[nodiscard]] Endpoint local() const override { return local_; }
  [[nodiscard]] Endpoint remote() const override { return remote_; }
  void ready() override;
  void close() override;
  void abort() override;
  void room_grew() override;
  void set_user(llp::StreamUser& user) override { user_ = &user; }
  void set_trace(base::TraceSink* sink) override { trace_ = sink; }
  [[nodiscard]] base::TraceSink* trace() const override { return trace_; }

  // --- The transport's side ---

  /// epoll's word. \param events EPOLLIN and so on
  void told(uint32_t events, base::Now now);
  /// The handshake is over: tells the user.
  void open(base::Now now);
  /// One turn of reading; hands up what came.
  uint32_t receive(std::vector<uint8_t>& buffer, llp::BeforeHandUp& before, base::Now now);
  /// One turn of sending: what is left, or else what the user has.
  void send(base::Now now);
  /// Space may be there again.
  void look_again();
  /// A deadline has come.
  void timer_fired(base::Now now);
  /// It is over: nothing is called up any more but ended(), by the transport.
  void doom(StreamEnd how);
  /// Closes the socket and tells the user. The last call.
  void finish(base::Now now);
  void learn_local();

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] bool wants_reading() const {
    return readable_ && waits_for_ == Lack::None && !doomed_;
  }
  [[nodiscard]] bool wants_sending() const;

  base::Handle handle;
  base::TimerNode timer;    ///< of the opening, of memory for sending, and of the peer's FIN
  bool is_listed = false;   ///< in the transport's list of those with something to do
  bool is_waiting = false;  ///< in the transport's list of those that lack space

 private:
  /// Why octets stay with the system, whose window tells the peer.
  enum class Lack : uint8_t {
    None,
    Window,  ///< receive_room() is 0
    Space,   ///< takes() is 0: more octets may change that, or what other streams give back
  };

  void apply_options(int fd, const Config& config);
  void refresh_emss();
  void pull_records(base::Now now);
  uint32_t pull_segment(uint32_t emss, base::Now now);
  /// False: the system takes no more for now, or the connection is over.
  bool write_out(base::Now now);
  void release_taken(base::Now now);
  void send_fin(base::Now now);
  int take(uint8_t* to, uint32_t octets);
  void note_read(ssize_t octets);
  void wait_for(Lack what);
  [[nodiscard]] uint32_t taken_of(base::ByteView octets);
  void hand_up(base::ByteView octets, base::Now now);
  void end_of_file(base::Now now);
  void fail(int error);
  void count_end();

  Transport& transport_;
  System& system_;
  const Config& config_;
  Counters& counters_;
  Descriptor descriptor_;
  Endpoint local_;
  Endpoint remote_;
  State state_;
  llp::StreamUser* user_ = nullptr;
  base::TraceSink* trace_ = nullptr;
  uint32_t emss_ = 0;

  // Sending.
  Unsent unsent_;
  uint64_t pulled_ = 0;  // stream offset behind the last octet pulled
  uint64_t taken_ = 0;   // stream offset behind the last octet the system has
  bool user_ready_ = false;
  bool writable_ = false;
  bool fin_wanted_ = false;
  bool fin_sent_ = false;
  int write_error_ = 0;  // what the peer had sent before is read first

  // Receiving.
  uint64_t received_ = 0;  // stream offset
  uint32_t owed_ = 0;      // octets before it that the system still has
  bool readable_ = false;
  Lack waits_for_ = Lack::None;
  bool peer_finished_ = false;

  bool doomed_ = false;
  bool opened_ = false;
  StreamEnd how_ended_ = StreamEnd::Closed;
};

}  // namespace rnic::socket
