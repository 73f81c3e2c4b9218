/// \file
/// What the start-up of one session works with.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "framing/start.hpp"
#include "framing/start_frame_sender.hpp"
#include "mpa/config.hpp"
#include "mpa/negotiation.hpp"
#include "mpa/start_frames.hpp"

namespace rnic::mpa {

/// A session has one until it is in full operation and the peer's TCP has all octets of our frames:
/// a connection that is up takes no memory for it.
struct StartUp {
  /// \param chosen by the application, of a responder not yet
  StartUp(const Config& with, framing::Role role, const framing::StartOptions& chosen)
      : config(with_revision(with, role, chosen)),
        options(chosen),
        plan(plan_request(config, chosen)),
        parser(role, config,
               role == framing::Role::Initiator ? plan.header.revision : config.revision) {}
  StartUp(const StartUp&) = delete;
  StartUp& operator=(const StartUp&) = delete;

  /// \return whether nothing that was sent may have to be sent again
  [[nodiscard]] bool is_acknowledged() const {
    return sender.is_acknowledged() && last_message.is_acknowledged();
  }
  void validate() const {
    parser.validate();
    sender.validate();
    last_message.validate();
  }

  const Config config;
  const framing::StartOptions options;
  StartPlan plan;             ///< initiator: the Request; responder: the Reply
  framing::StartOffer offer;  ///< contents of the peer's start frame
  base::ByteView ulp_data;    ///< the private data of the peer's frame, without a prefix
  /// The reason with which SendReject ends.
  framing::StartFailure refusal = framing::StartFailure::RejectedLocally;
  StartFrameParser parser;
  framing::StartFrameSender sender;
  framing::StartFrameSender last_message;

 private:
  static Config with_revision(Config config, framing::Role role,
                              const framing::StartOptions& chosen) {
    if (role == framing::Role::Initiator) {
      config.revision = chosen.revision.value_or(config.revision);
    }
    return config;
  }
};

}  // namespace rnic::mpa
