/// \file
/// Named defects for proving that the simulator's checkers see. In every ordinary build
/// `sabotaged()` is the constant false and the compiler removes it; the option `-Dsabotage=true`
/// builds a tree in which one defect at a time can be switched on. Such a tree is never installed.
#pragma once

#include <cstdint>

namespace rnic::base {

/// One row a defect; the comment says what a correct implementation does instead.
enum class Defect : uint8_t {
  None,
  PlaceBeforeCrc,         ///< mpa: payload reaches memory although its CRC is wrong
  DeliverEarly,           ///< mpa: an FPDU placed out of order is delivered at once
  BoundPlusOne,           ///< mem: access check allows one octet past the region
  Renege,                 ///< tcp: committed out-of-order data is forgotten after it was SACKed
  MarkerPlusFour,         ///< mpa: a sent marker's FPDUPTR is 4 too large
  StaleCrc,               ///< mpa: a retransmitted FPDU carries a CRC of other content
  CompleteBeforeData,     ///< rdmap: a send completes when posted to TCP, not when acknowledged
  RetransmitShifted,      ///< tcp: a retransmission carries octets of a neighbouring offset
  SkipAckedRecord,        ///< tcp: a record is released one segment too early
  WrongStagAccepted,      ///< mem: the key part of the STag is not compared
  RightsIgnored,          ///< mem: remote write right is not checked
  DuplicateDelivery,      ///< mpa: a duplicate FPDU is delivered twice
  DropWithoutRetransmit,  ///< tcp: retransmission time-outs do not retransmit
  ReadBeforeWrite,        ///< rdmap: a Read Request is answered at placement, not at delivery
  LostHold,               ///< mpa: held octets are thrown away at the first pressure
  FrontUnproven,          ///< mpa: octets before the first located FPDU are taken unseen
  CutsNeverBelieved,      ///< mpa: a cut FPDU is dropped as often as it comes
  LateReceiverLeft,       ///< rdmap: nobody wakes a peer whose receiver was installed too late
  CompletionOutOfOrder,   ///< rdmap: a Write completes before an earlier Read
  LeakSlot,               ///< tcp: a closed connection is never returned to its slab
  WindowIgnored,          ///< tcp: data goes out one segment beyond the peer's window
  WindowTakenBack,        ///< tcp: what came ahead of the order is taken from the window
  WindowBeyondHeader,     ///< tcp: takes beyond what the header's window field can say
  UpdateOfNothing,        ///< tcp: an ACK whenever the user reads
  FitsNever,              ///< rdmap: nobody is told that a small message fits into the window
  SmallWaits,             ///< tcp: a message that fits waits for a window of a whole segment
  OptionsNotCounted,      ///< tcp: EMSS is not reduced by the timestamps on every segment
  ChecksumIgnored,        ///< tcp: a segment with a wrong checksum is taken
  SecondCommitWins,       ///< tcp: octets that were committed are handed up again
  BlindReset,             ///< tcp: a RST anywhere in the window resets
  WildAckTaken,           ///< tcp: the ACK field of a segment with text is not checked
  DuplicatesCarried,      ///< tcp: what came behind one hole is told of as if behind the next
  SackTooLong,            ///< tcp: a SACK block ends one octet too late
  ProbeForgotten,         ///< tcp: a zero window is not probed
  SumsDrift,              ///< tcp: what arrived is still counted as lost
  AtomicTwice,            ///< rdmap: an atomic is done again when its response is sent again
  AtomicEarly,            ///< rdmap: an atomic is done when its request is placed
  MaskIgnored,            ///< rdmap: a masked FetchAdd carries from one field into the next
  SwapMaskWrong,          ///< rdmap: CmpSwap swaps the bits that the mask leaves out
};

#ifdef RNIC_SABOTAGE
extern Defect active_defect;
[[nodiscard]] inline bool sabotaged(Defect d) { return active_defect == d; }
#else
[[nodiscard]] constexpr bool sabotaged(Defect) { return false; }
#endif

}  // namespace rnic::base
