// rping's protocol, both ends (librdmacm's examples/rping.c): the client advertises memory, which
// the server Reads; then a second time, and the server Writes there what it had read.
#pragma once

#include "conversation.hpp"

namespace rnic::siw {

struct RpingOptions {
  uint32_t size = 64;     ///< octets of a message; rping's -S
  uint32_t count = 10;    ///< exchanges of a client; rping's -C
  int64_t patience = 60;  ///< seconds
};

class Rping : public Conversation {
 public:
  Rping(Context& context, Device device, const RpingOptions& options);

  [[nodiscard]] nlohmann::ordered_json report() const override;

 protected:
  Status prepare() override;
  void on_established() override;
  void on_completion(const Completion& done) override;
  /// A client of rping just closes.
  [[nodiscard]] bool expects_end() const override;

 private:
  void serve(const Completion& done);
  void ask(const Completion& done);
  void begin_exchange();
  bool post_receive();
  bool advertise(const MemoryRegion& region);
  bool move(Opcode opcode);
  [[nodiscard]] std::span<uint8_t> half(uint32_t which) {
    return memory_.octets().subspan(which * size_t{options_.size}, options_.size);
  }

  RpingOptions options_;
  workload::Buffer memory_;   // a client's start buffer, then its sink
  workload::Buffer control_;  // what comes, then what goes
  MemoryRegion start_;
  MemoryRegion sink_;
  MemoryRegion control_region_;
  uint32_t peer_stag_ = 0;
  uint64_t peer_address_ = 0;
  uint32_t peer_size_ = 0;
  uint32_t exchanges_ = 0;
  bool writing_ = false;  // the second half of an exchange
};

}  // namespace rnic::siw
