/// \file
/// One end of a connection to another process: connecting, and control messages over Sends.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workload/buffer.hpp"
#include "workload/operation.hpp"
#include "workload/pair.hpp"
#include "workload/pattern.hpp"

namespace rnic::workload {

/// What a server offers in its Reply's private data: a region of its memory.
struct Offer {
  uint32_t stag = 0;
  uint64_t address = 0;
  uint64_t length = 0;  ///< octets
};
inline constexpr size_t kOfferOctets = 28;
[[nodiscard]] std::array<uint8_t, kOfferOctets> encode(const Offer& offer);
/// Nothing when these are not an offer's octets.
[[nodiscard]] std::optional<Offer> decode_offer(std::span<const uint8_t> octets);

enum class ControlKind : uint8_t {
  Prepare = 1,  ///< client: the next batch; the server fills or poisons its memory, posts receives
  Ready = 2,    ///< server: go
  Verify = 3,   ///< client: compare
  Verdict = 4,  ///< server: `ok`
};

/// Fixed layout, network order, 64 octets.
struct ControlMessage {
  ControlKind kind = ControlKind::Prepare;
  Operation operation = Operation::Write;
  bool ok = true;
  uint64_t size = 0;      ///< octets of a message
  uint32_t slots = 0;     ///< places in the region
  uint32_t messages = 0;  ///< of the batch
  Pattern pattern;
};
inline constexpr size_t kControlOctets = 64;
void encode(const ControlMessage& message, std::span<uint8_t> octets);
[[nodiscard]] std::optional<ControlMessage> decode_control(std::span<const uint8_t> octets);

/// Distance of two slots of messages of `size` octets.
[[nodiscard]] inline uint64_t slot_stride(uint64_t size) { return (size + 63) / 64 * 64; }

/// Connects `end` and waits. \return the private data of the Reply.
Result<std::vector<uint8_t>> connect_end(Context& context, Party end, const Endpoint& remote,
                                         int64_t timeout_ms);

/// Polls the context until one completion is there, and checks that it is a success. `meanwhile` is
/// called at every turn.
Result<Completion> await(
    Context& context, CompletionQueue& queue, int64_t timeout_ms,
    const std::function<void()>& meanwhile = [] {});

/// Chooses the device of a context by name; empty: the first.
Result<Device> choose_device(Context& context, const std::string& name);

/// Ctrl-C was pressed. The first call installs the handler.
[[nodiscard]] bool interrupted();
/// As if it were: for a thread of the program that cannot go on.
void interrupt();

/// The machine lacks something, or the configuration is wrong: nothing was found out of the peer.
[[nodiscard]] bool is_of_environment(const Error& error);

}  // namespace rnic::workload
