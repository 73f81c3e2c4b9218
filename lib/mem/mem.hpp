/// \file
/// Layer `mem`: registered memory. STags, protection domains, rights, and *the one place* that
/// decides whether an access is allowed (RFC 5040 s.7, RFC 5041 s.7.1 and 8, RFC 5042):
/// StagTable::access().
///
/// The memory is the application's own; this layer keeps base, length, rights and identity.
#pragma once

#include "mem/stag_table.hpp"
