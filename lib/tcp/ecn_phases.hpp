/// \file
/// The states of the agreement of the SYNs on ECN (RFC 3168 s.6.1.1), and of the answer to a mark
/// (s.6.1.2), with their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class EcnAgreement : uint8_t {
  None,       ///< no SYN has come or gone
  Offered,    ///< our SYN asks
  Withdrawn,  ///< our latest SYN does not ask; the answer to an earlier SYN may still agree
  Declined,   ///< there is no agreement
  Agreed,     ///< marks are echoed, and our data is sent as ECN-capable
  EchoOnly,   ///< marks are echoed, but ECT is not set, since a SYN of one side did not ask
};

/// A SYN that comes again without asking ends what was agreed, until the handshake is complete.
inline constexpr base::Transitions<EcnAgreement, EcnAgreement::EchoOnly> kEcnTransitions{
    {EcnAgreement::None, {EcnAgreement::Offered, EcnAgreement::Declined, EcnAgreement::Agreed}},
    {EcnAgreement::Offered,
     {EcnAgreement::Withdrawn, EcnAgreement::Declined, EcnAgreement::Agreed}},
    {EcnAgreement::Withdrawn, {EcnAgreement::Declined, EcnAgreement::EchoOnly}},
    {EcnAgreement::Agreed, {EcnAgreement::Declined, EcnAgreement::EchoOnly}},
    {EcnAgreement::EchoOnly, {EcnAgreement::Declined}},
};

enum class CwrState : uint8_t {
  None,  ///< no reduction stands
  Owed,  ///< the next segment of new data carries CWR
  Said,  ///< the peer knows of the reduction, or need not, since nothing of ours is marked
};

/// The window may be reduced again before or after the peer was told of a reduction. An undo takes
/// a reduction back.
inline constexpr base::Transitions<CwrState, CwrState::Said> kCwrTransitions{
    {CwrState::None, {CwrState::Owed, CwrState::Said}},
    {CwrState::Owed, {CwrState::None, CwrState::Said}},
    {CwrState::Said, {CwrState::None, CwrState::Owed}},
};

}  // namespace rnic::tcp
