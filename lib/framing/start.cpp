#include "framing/start.hpp"

namespace rnic::framing {

const char* to_string(StartFailure failure) {
  switch (failure) {
    case StartFailure::BadKey: return "the peer does not speak MPA (wrong key in its start frame)";
    case StartFailure::BothInitiators:
      return "both ends are initiators (a Request came where the Reply was expected)";
    case StartFailure::BadRevision: return "the peer's MPA revision is not one that is served";
    case StartFailure::BadLength:
      return "the length of the private data in the start frame is impossible";
    case StartFailure::MarkersRefused:
      return "the peer requires markers and this side is configured not to send them";
    case StartFailure::UnexpectedData: return "octets behind the Request before the Reply was sent";
    case StartFailure::TimedOut: return "start-up not finished in time";
    case StartFailure::StreamEnded: return "the stream ended during the start-up";
    case StartFailure::RejectedByPeer: return "rejected by the peer";
    case StartFailure::RejectedLocally: return "rejected by this side";
    case StartFailure::NoReply:
      return "the peer closed the connection instead of replying: it may not serve this revision";
    case StartFailure::ResetBeforeReply:
      return "the peer reset the connection instead of replying: it let this start-up go for "
             "others or a limit of it is reached (its log and counters tell), or it does not serve "
             "this revision of MPA";
    case StartFailure::NotEnhanced:
      return "the peer does not speak RFC 6581 (its Reply to an enhanced Request is a plain one)";
    case StartFailure::InsufficientReads:
      return "IRD and ORD do not fit: one side wants more Reads at once than the other can take";
    case StartFailure::NoMatchingRtr: return "no kind of RTR that both sides support";
    case StartFailure::LocalError: return "the Reply cannot be met by this side's configuration";
    case StartFailure::RtrMissing: return "the initiator's RTR did not come in time";
    case StartFailure::RtrBroken:
      return "what the initiator sent in place of its RTR is no FPDU (its CRC, its length or its "
             "markers are wrong)";
    case StartFailure::ForeignFrame:
      return "the peer does not speak ULP framing (its start frame is another protocol's)";
    case StartFailure::OutOfMemory: return "this side has no memory for the start-up";
    case StartFailure::NoCommonMode: return "no mode of ULP framing that both ends have";
    case StartFailure::Refused:
      return "the peer refused the TCP connection: nothing listens at its port";
    case StartFailure::Unreachable:
      return "the peer is unreachable: the network tells that there is no way to it";
    case StartFailure::Unanswered: return "the peer did not answer TCP's SYN in time";
  }
  return "unknown";
}

StartFailure start_failure_of(StreamEnd how, bool opened) {
  if (opened) return StartFailure::StreamEnded;
  switch (how) {
    case StreamEnd::Refused: return StartFailure::Refused;
    case StreamEnd::Unreachable: return StartFailure::Unreachable;
    case StreamEnd::TimedOut: return StartFailure::Unanswered;
    default: return StartFailure::StreamEnded;
  }
}

void note_reads(const StartOffer& peer, ConnectionFacts& facts) {
  if (!peer.has_reads()) return;
  facts.peer_ird = peer.ird;
  facts.peer_ord = peer.ord;
}

}  // namespace rnic::framing
