/// \file
/// Values of the types that several calls take, and the worlds in which the calls are made.
#pragma once

#include "table.hpp"

namespace rnic::arguments {

inline constexpr uint16_t kPort = 7471;
inline constexpr uint16_t kStreamPort = 7000;
inline constexpr uint16_t kFramedPort = 7200;

// Worlds: `a` is an End of the near device, `b` of the far one, where listeners are.
void two_ends(World& w);
void connected(World& w);
void asked(World& w);     ///< `request` is the far device's, from `a`
void answered(World& w);  ///< `request` is rejected, and its connection gone
void listening(World& w);
void with_consumer(World& w);
void with_port(World& w);  ///< `reserved_port` is the near device's
void with_srq(World& w);   ///< `srq` is in the domain `pd`
void with_streams(World& w);
void with_framed_streams(World& w);
void with_adapters(World& w);
void with_links(World& w);

/// Options of a queue pair that the small devices have room for.
QueuePairOptions small(SharedReceiveQueue* srq = nullptr);

/// What the next completion of a send queue says: success, or Protocol with its words.
Status completed(World& w, CompletionQueue& cq);

/// Endpoints of peers. \param listener where somebody listens
Values<Endpoint> remotes(uint16_t listener);
/// Endpoints to listen on at the far device.
Values<Endpoint> locals(const std::string& call);
Values<uint16_t> listen_ports();
Values<std::vector<uint8_t>> private_data(size_t most);
Values<TcpOptions> tcp_options();
Values<ConnectOptions> connect_options();
/// Those that an answer has; the rest is an initiator's.
Values<ConnectOptions> accept_options();
Values<ListenOptions> listen_options();
Values<CompletionQueueOptions> completion_queue_options();
Values<NotifyModeration> moderations();
Values<FramingOptions> framing_options();

/// `Options` whose member is what the values say. \param said begins the words of each: ".tcp"
template <typename Options, typename Part>
Values<Options> inside(const Values<Part>& parts, Part Options::*member, const std::string& said) {
  Values<Options> out;
  for (const Value<Part>& part : parts) {
    out.push_back({part.of, said + part.said,
                   [make = part.make, member](World& w) {
                     Options options;
                     options.*member = make(w);
                     return options;
                   },
                   part.expected});
  }
  return out;
}
template <typename T>
Values<T> operator+(Values<T> first, const Values<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// `text`, an octet of 0 and more, which every text has among its values: a function of the system
/// would take it for `text`.
inline Value<std::string> with_zero(std::string text, Expected expected,
                                    const std::string& more = "") {
  text += '\0';
  return value<std::string>(Class::Illegal, "an octet of 0", text + "more" + more,
                            std::move(expected));
}

}  // namespace rnic::arguments
