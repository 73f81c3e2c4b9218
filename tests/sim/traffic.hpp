/// \file
/// Traffic: the messages of one direction of one pair of queue pairs, and what must be true of
/// memory and completions at each moment. The model is omniscient: it sees both ends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "device/device.hpp"
#include "memory.hpp"
#include "profile.hpp"
#include "reference_receiver.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

/// A registered region.
struct Region {
  Region(device::Device& device, uint64_t octets, const mem::RegionSpec& spec, Verdict& verdict);

  GuardedMemory memory;
  mem::Stag stag;
  uint64_t base = 0;  ///< TO of the first octet
};

/// One end of a pair of connected queue pairs.
struct End {
  uint32_t side = 0;
  device::Device* device = nullptr;
  device::QueuePair* qp = nullptr;
  device::CompletionQueue* send_cq = nullptr;
  device::CompletionQueue* receive_cq = nullptr;
  uint32_t pd = 0;
  bool established = false;
  bool disconnected = false;
  bool closing = false;
};

enum class Operation : uint8_t {
  Send,
  SendSolicited,
  SendInvalidate,
  Immediate,  ///< takes a receive as the Sends do
  Write,
  Read,      ///< from memory that no Write touches
  ReadBack,  ///< of what the message before it has written
  FetchAdd,  ///< on the flow's own word
  CompareSwap,
};

/// What a flow will do; made by the seed alone.
struct MessagePlan {
  Operation operation = Operation::Send;
  uint32_t length = 0;
  uint32_t pieces = 1;
  uint32_t receive_pieces = 1;
  uint32_t slack = 0;  ///< octets of the receive buffer beyond the message
  bool signaled = true;
  bool fence = false;
};

/// `share` of the world's messages and octets.
[[nodiscard]] std::vector<MessagePlan> plan_messages(const WorldPlan& plan, uint32_t count,
                                                     uint64_t octets, base::Prng& prng);

class Flow {
 public:
  Flow(std::string name, const WorldPlan& plan, End& from, End& to,
       std::vector<MessagePlan> messages, uint64_t seed, Verdict& verdict);

  /// Receives, then sends, as far as windows and memory let it. \return true when anything was
  /// posted.
  bool post(base::Now now);
  /// The time after `now` at which receives that come late are due; kNever: none are.
  [[nodiscard]] base::Now next_receives(base::Now now) const;

  /// A completion of the send queue of `from`.
  void send_completed(const Completion& completion);
  /// A completion of the receive queue of `to`.
  void receive_completed(const Completion& completion);
  /// What the reference receiver at `to` delivers.
  void reference_request(const WireMessage& message);
  /// The first message of this direction is a zero-length Write as RTR (RFC 6581 s.9.2).
  void expect_rtr() { rtr_expected_ = true; }
  /// A Write of no octets, to wake a late receiver, may come once (decision 10).
  /// \param silent whether nothing has come back yet
  void expect_nudge(std::function<bool()> silent) { nudge_allowed_ = std::move(silent); }
  /// A Read Response that the reference receiver at `from` delivers.
  void reference_response(const WireMessage& message);

  /// The connection may end at any time from now on: what was not completed is flushed, in order,
  /// to the last request.
  void break_off() { broken_ = true; }
  [[nodiscard]] bool broken() const { return broken_; }
  /// The first message is completed.
  [[nodiscard]] bool begun() const { return completed_jobs_ != 0; }
  /// Every message is completed at both ends.
  [[nodiscard]] bool done() const;
  /// The connection is gone: receives that nobody used must have been flushed.
  void check_end();
  /// Octets of messages on their way are as before, or as after; all others are untouched.
  void check_memory();
  /// The word of the atomics is as one of them found it, and all before that one were delivered.
  void check_word();
  /// Deregisters everything.
  void release_regions();
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] uint64_t messages() const { return messages_.size(); }
  [[nodiscard]] uint64_t octets() const;

 private:
  struct Piece {
    Region* region;
    Slice slice;
  };
  struct Job {
    uint64_t id = 0;
    MessagePlan plan;
    uint64_t key = 0;
    std::vector<Piece> local;
    Piece remote{};        // Write: sink, Read: source
    uint32_t receive = 0;  // Sends: index of the receive that takes it
    mem::Stag invalidate;  // SendInvalidate
    AtomicOperands operands;
    uint64_t original = 0;  // atomics: what the word holds before
    bool completed = false;
    bool released = false;
  };
  struct Receive {
    uint64_t id = 0;
    std::vector<Piece> pieces;
    uint32_t length = 0;  // octets of its buffer
    bool completed = false;
  };

  bool post_receives(base::Now now);
  [[nodiscard]] bool lacks_receives() const;
  bool post_receive();
  bool post_send();
  void send_flushed(const Completion& completion);
  void check_broken_end();
  [[nodiscard]] SendRequest make_work(const Job& job) const;
  bool prepare(Job& job);
  [[nodiscard]] bool completion_awaited() const;
  bool take_pieces(Region& region, uint32_t length, uint32_t count, std::vector<Piece>& out);
  void complete(Job& job);
  void check_content(const Job& job, const std::vector<Piece>& pieces, const char* moment);
  void check_mixed(const Job& job, const std::vector<Piece>& pieces);
  void check_original(const Job& job, bool completed);
  [[nodiscard]] std::optional<std::string> wrong_atomic(const Job& job,
                                                        const WireMessage& message) const;
  void check_delivered_before(size_t job_index, const char* moment);
  void check_reference(size_t job_index, bool response, const char* moment);
  void release(std::vector<Piece>& pieces);
  void fail(const char* checker, const std::string& message);
  [[nodiscard]] std::string describe(const Job& job) const;
  [[nodiscard]] static bool is_send(Operation operation) { return operation < Operation::Write; }
  /// Has a response: Reads and atomics.
  [[nodiscard]] static bool is_read(Operation operation) { return operation >= Operation::Read; }
  [[nodiscard]] static bool is_atomic(Operation operation) {
    return operation >= Operation::FetchAdd;
  }
  [[nodiscard]] static Opcode work_opcode(Operation operation);
  /// The 8 octets of an Immediate.
  [[nodiscard]] static std::array<uint8_t, 8> immediate_of(const Job& job);

  std::string name_;
  const WorldPlan& world_;
  End& from_;
  End& to_;
  std::vector<MessagePlan> messages_;
  base::Prng prng_;
  uint64_t key_;
  Verdict& verdict_;

  // At `from`.
  std::unique_ptr<Region> source_;
  std::unique_ptr<Region> sink_;
  // At `to`.
  std::unique_ptr<Region> receive_;
  std::unique_ptr<Region> target_;
  std::unique_ptr<Region> rewritten_;  // of Writes that are read back
  std::unique_ptr<Region> readable_;
  std::unique_ptr<Region> window_;   // carries the STags that Sends invalidate
  std::vector<mem::Stag> windows_;   // not yet deregistered
  std::unique_ptr<Region> counter_;  // holds the word of the atomics
  Slice word_;
  uint64_t word_value_ = 0;  // after all atomics that were posted

  std::deque<Job> jobs_;       // all that were posted
  size_t completed_jobs_ = 0;  // in order
  size_t delivered_jobs_ = 0;  // whose Writes are known to have arrived
  bool broken_ = false;
  bool flushing_ = false;
  std::optional<Piece> last_write_;  // for ReadBack
  uint64_t last_write_key_ = 0;
  std::vector<uint32_t> send_jobs_;  // Sends: index of the job, by receive
  std::vector<uint32_t> read_jobs_;  // Reads: index of the job
  std::vector<MessagePlan> sends_;   // planned Sends, by receive
  std::deque<Receive> receives_;
  base::Now receives_due_{};  // with WorldPlan::receive_delay: not before
  size_t received_ = 0;  // completed receives, in order
  bool rtr_expected_ = false;
  std::function<bool()> nudge_allowed_;
  size_t reference_requests_ = 0;   // jobs that the reference at `to` has seen
  size_t reference_responses_ = 0;  // entries of read_jobs_ that the reference at `from` has seen
};

}  // namespace rnic::simulation
