/// \file
/// The users of streams: they send a known stream and check every octet and every promise of the
/// edge on what they receive.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "llp/stream.hpp"
#include "stream/plan.hpp"
#include "tcp/byte_stream.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

/// Both directions of one stream: names of the contents, and how much of each.
struct StreamContent {
  uint64_t send_key = 0;
  uint64_t receive_key = 0;
  uint64_t send_octets = 0;
  uint64_t receive_octets = 0;
};

class Application {
 public:
  Application(std::string name, const ApplicationPlan& plan, const StreamContent& content,
              uint64_t seed, Verdict& verdict)
      : name_(std::move(name)), plan_(plan), content_(content), prng_(seed), verdict_(verdict) {}
  virtual ~Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  virtual void attach(llp::Stream& stream) = 0;
  [[nodiscard]] virtual llp::StreamUser& user() = 0;
  /// Writes, reads and closes as the plan says.
  virtual void run(base::Now now) = 0;
  [[nodiscard]] virtual base::Now next_deadline() const = 0;
  [[nodiscard]] virtual std::optional<StreamEnd> how_ended() const = 0;
  /// The receive side's delivery point.
  [[nodiscard]] virtual uint64_t received() const = 0;
  /// The stream has ended well, and there is something left to read.
  [[nodiscard]] bool is_behind() const {
    return how_ended() == StreamEnd::Closed && received() < content_.receive_octets;
  }
  /// Octets of its stream that it has to give, or has given.
  [[nodiscard]] virtual uint64_t given() const = 0;
  /// Ends of records: first transmissions of framed users begin and end there.
  [[nodiscard]] virtual bool is_boundary(uint64_t) const { return true; }
  /// Counts the invariants of the stream's user anew.
  virtual void validate() const {}
  /// After the end: everything went over and came, and the stream ended as it should.
  void check_end() const;

  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  [[nodiscard]] virtual uint64_t sent() const = 0;
  void fail(const std::string& what) const { verdict_.fail("application", name_ + ": " + what); }
  /// Octets that may be read now, at `received` octets read so far.
  uint64_t reading_budget(uint64_t received, base::Now now);
  [[nodiscard]] base::Now reading_deadline() const;
  void check_content(base::ByteView octets, uint64_t offset) const;

  std::string name_;
  const ApplicationPlan plan_;
  const StreamContent content_;
  base::Prng prng_;
  Verdict& verdict_;
  base::Now next_write_{};

 private:
  base::Now stopped_until_{};
  bool stopped_ = false;  // now
  bool stopped_once_ = false;
  bool waits_to_read_ = false;
  base::Now next_read_{};
};

/// Reads and writes rings: tcp::ByteStream.
class OctetApplication final : public Application {
 public:
  OctetApplication(std::string name, const ApplicationPlan& plan, const StreamContent& content,
                   uint64_t seed, Verdict& verdict)
      : Application(std::move(name), plan, content, seed, verdict), stream_(plan.ring) {}

  void attach(llp::Stream& stream) override { stream_.attach(stream); }
  [[nodiscard]] llp::StreamUser& user() override { return stream_; }
  void run(base::Now now) override;
  [[nodiscard]] base::Now next_deadline() const override;
  [[nodiscard]] std::optional<StreamEnd> how_ended() const override { return stream_.how_ended(); }
  [[nodiscard]] uint64_t received() const override { return read_; }
  [[nodiscard]] uint64_t given() const override { return written_; }
  void validate() const override { stream_.validate(); }

 private:
  [[nodiscard]] uint64_t sent() const override { return written_; }
  bool write(base::Now now);
  void read(base::Now now);

  tcp::ByteStream stream_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
  bool closed_ = false;
};

/// Pulls records of its own sizes, rebuilds them on demand, and takes octets in any order.
class RecordApplication final : public Application, public llp::StreamUser {
 public:
  RecordApplication(std::string name, const ApplicationPlan& plan, const StreamContent& content,
                    uint64_t seed, Verdict& verdict)
      : Application(std::move(name), plan, content, seed, verdict),
        placed_(content.receive_octets, false) {}

  void attach(llp::Stream& stream) override { stream_ = &stream; }
  [[nodiscard]] llp::StreamUser& user() override { return *this; }
  void run(base::Now now) override;
  [[nodiscard]] base::Now next_deadline() const override;
  [[nodiscard]] std::optional<StreamEnd> how_ended() const override { return ended_; }
  [[nodiscard]] uint64_t received() const override { return ordered_; }
  [[nodiscard]] uint64_t given() const override {
    return may_write_ ? content_.send_octets : pulled_;
  }
  [[nodiscard]] bool is_boundary(uint64_t offset) const override;

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override { emss_ = emss; }
  [[nodiscard]] bool all_fits(uint32_t octets) const override {
    return given() - pulled_ <= octets;
  }
  [[nodiscard]] uint32_t receive_room() const override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  struct Record {
    uint64_t offset;
    uint32_t length;
  };

  [[nodiscard]] uint64_t sent() const override { return released_; }

  llp::Stream* stream_ = nullptr;
  std::vector<bool> placed_;
  std::vector<Record> records_;  // as pulled, in order
  size_t first_unreleased_ = 0;
  uint64_t pulled_ = 0;
  uint64_t released_ = 0;
  uint64_t ordered_ = 0;
  uint64_t consumed_ = 0;     // what the user has read; the window is counted from there
  uint32_t next_length_ = 0;  // of the record to come, once it was drawn
  uint32_t emss_ = 0;
  bool may_write_ = false;
  bool established_ = false;
  bool peer_finished_ = false;
  bool closed_ = false;
  std::optional<StreamEnd> ended_;
};

[[nodiscard]] std::unique_ptr<Application> make_application(std::string name,
                                                            const ApplicationPlan& plan,
                                                            const StreamContent& content,
                                                            uint64_t seed, Verdict& verdict);

}  // namespace rnic::simulation
