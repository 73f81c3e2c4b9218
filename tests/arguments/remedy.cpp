#include "remedy.hpp"

#include <regex>

namespace rnic::arguments {

bool has_remedy(const std::string& text) {
  static const std::regex kRangeOrPage(R"(\bat (most|least)\b|\d+\.\.\w|\d+ to \d|\bdocs/)");
  // What is wrong comes before a sign or one of four words, and what to do behind it.
  static const std::regex kImperative(
      R"((?:[:;,(] ?|\b(?:or|and|so|then) )(?:or |and |so |then )?(?:add|answer|ask|bind|call)"
      R"(|choose|combine|configure|connect|create|deregister|destroy|drain|end|give|invalidate)"
      R"(|leave|let|lower|make|move|name|poll|post|raise|read|receive|register|reserve|resize)"
      R"(|see|send|set|split|take|trace|try|use|wait|write)\b)");
  return std::regex_search(text, kRangeOrPage) || std::regex_search(text, kImperative);
}

}  // namespace rnic::arguments
