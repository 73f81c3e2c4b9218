#include "rnic/planned_fault.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/no_throw.hpp"

namespace rnic {

namespace {

using Kind = PlannedFaultKind;
using Words = std::vector<std::string_view>;

struct Unit {
  std::string_view name;
  double nanoseconds;
};
// The largest unit comes first: a time is written with the first one that divides it.
constexpr std::array kUnits{Unit{"min", 60e9}, Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"us", 1e3}};

/// A form of the line. A word of lower-case letters stands for itself, the others for a value: N a
/// number of an FPDU, M one of a message, K one of a Read Response, R one of a request, T a time.
struct Form {
  Kind kind;
  std::string_view words;
  std::string_view example;
};
constexpr std::array kForms{
    Form{Kind::DropFpdu, "drop fpdu N of message M", "drop fpdu 3 of message 7"},
    Form{Kind::BadCrc, "bad crc on fpdu N of message M", "bad crc on fpdu 1 of message 7"},
    Form{Kind::BadReadResponse, "bad crc on read response K", "bad crc on read response 2"},
    Form{Kind::Terminate, "terminate now", "terminate now"},
    Form{Kind::Terminate, "terminate at message M", "terminate at message 7"},
    Form{Kind::StallResponder, "stall the responder T", "stall the responder 2s"},
    Form{Kind::StallResponder, "stall the responder T at request R",
         "stall the responder 2s at request 3"},
};

Words words_of(std::string_view text) {
  Words out;
  constexpr std::string_view kBlank = " \t";
  for (size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return out;
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string lower(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// A number from 1 on; nothing: the word is none.
std::optional<uint32_t> number_of(std::string_view word) {
  uint32_t value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || rest != end || value == 0) return std::nullopt;
  return value;
}

/// A time such as "1.5s", at most kLongestStall; nothing: the word is none.
std::optional<std::chrono::nanoseconds> time_of(std::string_view word) {
  // from_chars would take "inf" and "nan".
  if (word.empty() || word.front() < '0' || word.front() > '9') return std::nullopt;
  double value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view name(rest, static_cast<size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    const double nanoseconds = value * unit.nanoseconds;
    const std::chrono::nanoseconds most = kLongestStall;
    if (nanoseconds > static_cast<double>(most.count())) return std::nullopt;
    return std::chrono::nanoseconds(std::llround(nanoseconds));
  }
  return std::nullopt;
}

std::string time_text(std::chrono::nanoseconds time) {
  for (const Unit& unit : kUnits) {
    const auto factor = static_cast<int64_t>(unit.nanoseconds);
    if (time.count() != 0 && time.count() % factor == 0) {
      return std::to_string(time.count() / factor) + std::string(unit.name);
    }
  }
  // The units are those of the parser, which also takes a fraction.
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(),
                                 static_cast<double>(time.count()) / 1e3, std::chars_format::fixed)
                       .ptr;
  return std::string(text.data(), end) + "us";
}

/// Puts the value of `word` where its place in a form says. \return it is such a value
bool take(char place, std::string_view word, PlannedFault& out) {
  if (place == 'T') {
    const auto time = time_of(word);
    if (time) out.delay = *time;
    return time.has_value();
  }
  const auto number = number_of(word);
  if (!number) return false;
  (place == 'N' ? out.fpdu : place == 'R' ? out.request : out.message) = *number;
  return true;
}

bool is_place(std::string_view word) { return word.size() == 1; }

/// How far a line is of one form: the words that fit from the beginning on.
struct Match {
  const Form* form = nullptr;
  Words wanted;
  size_t good = 0;
  PlannedFault fault;
};

Match match(const Form& form, const Words& words) {
  Match out{&form, words_of(form.words), 0, {}};
  out.fault.kind = form.kind;
  for (; out.good < words.size() && out.good < out.wanted.size(); ++out.good) {
    const std::string_view want = out.wanted[out.good];
    const std::string_view word = words[out.good];
    if (is_place(want) ? !take(want[0], word, out.fault) : lower(word) != want) break;
  }
  return out;
}

std::string meaning_of(std::string_view want) {
  switch (want[0]) {
    case 'N': return "the number of an FPDU, from 1 on";
    case 'M': return "the number of a message, from 1 on";
    case 'K': return "the number of a Read Response, from 1 on";
    case 'R': return "the number of a request, from 1 on";
    default: return "a time with a unit, us, ms, s or min, of at most an hour, as in 200ms or 2s";
  }
}

/// The text behind "write": the examples of all forms, or of those that fit as well as `best`.
std::string examples(std::span<const Match> matches, size_t best) {
  std::string out;
  for (const Match& each : matches) {
    if (each.good != best) continue;
    out += (out.empty() ? "" : ", ") + quoted(each.form->example);
  }
  return out;
}

std::string complaint(std::string_view text, const Words& words, std::span<const Match> matches,
                      const Match& best) {
  const std::string remedy = "write " + examples(matches, best.good);
  if (best.good == 0) {
    return words.empty() ? "an empty line is no fault: " + remedy
                         : quoted(text) + " is no fault: " + remedy;
  }
  if (best.good == words.size()) return quoted(text) + " is not whole: " + remedy;
  const std::string wrong = quoted(words[best.good]);
  if (best.good == best.wanted.size()) {
    return quoted(text) + " has more than it needs, from " + wrong + " on: " + remedy;
  }
  const std::string_view want = best.wanted[best.good];
  if (!is_place(want)) return quoted(text) + " goes wrong at " + wrong + ": " + remedy;
  return quoted(text) + ": " + wrong + " is not " + meaning_of(want) + ": " + remedy;
}

}  // namespace

namespace {

Result<PlannedFault> parse(std::string_view text) {
  const Words words = words_of(text);
  std::vector<Match> matches;
  size_t best = 0;
  for (const Form& form : kForms) {
    matches.push_back(match(form, words));
    const Match& now = matches.back();
    if (now.good == words.size() && now.good == now.wanted.size()) return now.fault;
    if (now.good > matches[best].good) best = matches.size() - 1;
  }
  return tl::unexpected(
      Error{ErrorCode::InvalidArgument, complaint(text, words, matches, matches[best])});
}

std::string line_of(const PlannedFault& fault) {
  const std::string message = std::to_string(fault.message);
  const std::string fpdu = "fpdu " + std::to_string(fault.fpdu) + " of message " + message;
  switch (fault.kind) {
    case Kind::DropFpdu: return "drop " + fpdu;
    case Kind::BadCrc: return "bad crc on " + fpdu;
    case Kind::BadReadResponse: return "bad crc on read response " + message;
    case Kind::Terminate:
      return fault.message == 0 ? "terminate now" : "terminate at message " + message;
    case Kind::StallResponder: break;
  }
  const std::string stall = "stall the responder " + time_text(fault.delay);
  return fault.request == 0 ? stall : stall + " at request " + std::to_string(fault.request);
}

}  // namespace

Result<PlannedFault> parse_planned_fault(std::string_view text) {
  return result_or_exhausted([text] { return parse(text); });
}

std::string to_string(const PlannedFault& fault) {
  return text_or_none([&fault] { return line_of(fault); });
}

bool needs_frames(const PlannedFault& fault) {
  return fault.kind == Kind::DropFpdu || fault.kind == Kind::BadCrc ||
         fault.kind == Kind::BadReadResponse;
}

}  // namespace rnic
