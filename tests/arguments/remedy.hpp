/// \file
/// A test that the text of an error says what to do.
#pragma once

#include <string>

namespace rnic::arguments {

/// A remedy is a range that the value has to be in ("at most 16", "1..128", "16 to 64"), a page of
/// docs/, or an imperative behind what is wrong: "the queue is full: poll completions, or create it
/// deeper". What only looks like one is not told apart, so the words of new texts may have to be
/// added here.
[[nodiscard]] bool has_remedy(const std::string& text);

}  // namespace rnic::arguments
