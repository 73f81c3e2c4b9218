#include "settings/values.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "base/check.hpp"

namespace rnic::settings {
namespace {

using Wrong = std::optional<std::string>;

struct Unit {
  std::string_view name;
  int64_t factor;
};
// The largest unit comes first: a value is written with the first unit that divides it.
constexpr Unit kTimeUnits[] = {
    {"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};
constexpr Unit kSizeUnits[] = {{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}};

// The words of each enumeration, in the order of its enumerators.
constexpr std::string_view kEcnWords[] = {"off", "accept", "offer"};
constexpr std::string_view kHugepagesWords[] = {"auto", "require", "off"};
constexpr std::string_view kModeWords[] = {"inline", "threaded"};
constexpr std::string_view kIdleWords[] = {"spin", "yield", "sleep", "auto"};
constexpr std::string_view kFramingWords[] = {"mpa", "tuf"};
constexpr std::string_view kFragmentWords[] = {"drop", "mtu", "many", "one", "spanning"};

std::span<const std::string_view> words_of(const CongestionControl*) {
  return kCongestionControlNames;
}
std::span<const std::string_view> words_of(const Ecn*) { return kEcnWords; }
std::span<const std::string_view> words_of(const dpdk::Hugepages*) { return kHugepagesWords; }
std::span<const std::string_view> words_of(const WorkerSettings::Mode*) { return kModeWords; }
std::span<const std::string_view> words_of(const WorkerSettings::Idle*) { return kIdleWords; }
std::span<const std::string_view> words_of(const Framing*) { return kFramingWords; }
std::span<const std::string_view> words_of(const net::FragmentPolicy*) { return kFragmentWords; }

std::string quoted(std::string_view text) {
  return std::string(1, '"').append(text).append(1, '"');
}

std::string joined(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view word : words) out += (out.empty() ? "" : ", ") + quoted(word);
  return out;
}

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string shown(const Raw& raw) {
  if (const auto* flag = std::get_if<bool>(&raw.value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&raw.value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&raw.value)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&raw.value)) return quoted(*text);
  return "a list";
}

std::string with_unit(int64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return "0";
}

/// Parses "1.5s" to 1.5e9. Nothing: the text is not a number with a unit of the table.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  // from_chars would take "inf" and "nan".
  if (text.empty() || text[0] < '0' || text[0] > '9') return {};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc()) return {};
  std::string_view name(rest, static_cast<size_t>(end - rest));
  while (!name.empty() && name[0] == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == name) return number * static_cast<double>(unit.factor);
  }
  return {};
}

/// True for a target of whole numbers; bool is not one.
template <typename To>
constexpr bool kIsNumber = std::is_pointer_v<To>&& std::is_unsigned_v<std::remove_pointer_t<To>> &&
                           !std::is_same_v<To, bool*>;

std::string out_of_range(const Raw& raw, const std::string& range) {
  return shown(raw) + " is out of range: " + range;
}

/// Parses "10.0.0.1/24"; nothing: the text is not a prefix.
std::optional<net::Prefix> parse_prefix(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {};
  const auto address = parse_ip(text.substr(0, slash));
  if (!address) return {};
  net::Prefix prefix{*address, 0};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, prefix.length);
  const int most = address->is_v4() ? 32 : 128;
  if (parsed.ec != std::errc() || parsed.ptr != end || prefix.length > most) return {};
  return prefix;
}

struct Assign {
  const Accepted& limits;
  const Raw& raw;

  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&raw.value); }

  Wrong operator()(bool* target) const {
    const auto* flag = std::get_if<bool>(&raw.value);
    if (flag == nullptr) return shown(raw) + " is neither true nor false";
    *target = *flag;
    return {};
  }

  template <typename T>
  requires std::is_unsigned_v<T> Wrong operator()(T* target) const {
    int64_t value = 0;
    if (const auto* whole = std::get_if<int64_t>(&raw.value)) {
      value = *whole;
    } else if (limits.octets && text() != nullptr) {
      const auto size = parse_with_unit(*text(), kSizeUnits);
      if (!size) return shown(raw) + " is not a size: write octets, or as in \"64KB\" or \"4MB\"";
      if (*size > 9e15) return out_of_range(raw, range_text(target, limits));
      if (*size != std::floor(*size)) return shown(raw) + " is not a whole number of octets";
      value = static_cast<int64_t>(*size);
    } else {
      return shown(raw) + " is not a whole number";
    }
    if (value < limits.range.lo || value > limits.range.hi) {
      return out_of_range(raw, range_text(target, limits));
    }
    *target = static_cast<T>(value);
    return {};
  }

  Wrong operator()(double* target) const {
    double value = 0;
    if (const auto* whole = std::get_if<int64_t>(&raw.value)) {
      value = static_cast<double>(*whole);
    } else if (const auto* number = std::get_if<double>(&raw.value)) {
      value = *number;
    } else {
      return shown(raw) + " is not a number";
    }
    // The comparison is written so that NaN fails.
    if (!(value >= static_cast<double>(limits.range.lo) &&
          value <= static_cast<double>(limits.range.hi))) {
      return out_of_range(raw, range_text(target, limits));
    }
    *target = value;
    return {};
  }

  Wrong operator()(base::Duration* target) const {
    const auto value = text() != nullptr ? parse_with_unit(*text(), kTimeUnits) : std::nullopt;
    if (!value) {
      return shown(raw) +
             " is not a duration: write a string with a unit (ns, us, ms, s, min, h), as in "
             "\"200ms\"";
    }
    if (!(*value >= static_cast<double>(limits.range.lo) &&
          *value <= static_cast<double>(limits.range.hi))) {
      return out_of_range(raw, range_text(target, limits));
    }
    *target = base::Duration(std::llround(*value));
    return {};
  }

  Wrong operator()(std::string* target) const {
    if (text() == nullptr) return shown(raw) + " is not a string: put it in quotes";
    // The system, to which it is a name, would see only the octets before a zero.
    if (text()->find('\0') != std::string::npos) {
      return shown(raw) + " has an octet of 0 in it: leave it out";
    }
    *target = *text();
    return {};
  }

  template <typename T>
  Wrong operator()(std::vector<T>* target) const {
    const auto* list = std::get_if<std::vector<Raw>>(&raw.value);
    if (list == nullptr) return shown(raw) + " is not a list: write it in brackets";
    std::vector<T> values(list->size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (Wrong wrong = Assign{limits, (*list)[i]}(&values[i])) return wrong;
    }
    *target = std::move(values);
    return {};
  }

  template <typename T>
  requires std::is_enum_v<T> Wrong operator()(T* target) const {
    const auto words = words_of(target);
    if (text() != nullptr) {
      const auto found = std::find(words.begin(), words.end(), *text());
      if (found != words.end()) {
        *target = static_cast<T>(found - words.begin());
        return {};
      }
    }
    return shown(raw) + " is not one of " + joined(words);
  }

  Wrong operator()(Mac* target) const {
    const std::string wrong = shown(raw) + " is not a MAC address: write \"02:00:00:00:00:01\"";
    if (text() == nullptr || text()->size() != 17) return wrong;
    Mac mac{};
    for (size_t i = 0; i < mac.size(); ++i) {
      const char* at = text()->data() + 3 * i;
      if (i > 0 && at[-1] != ':') return wrong;
      const auto [end, error] = std::from_chars(at, at + 2, mac[i], 16);
      if (error != std::errc() || end != at + 2) return wrong;
    }
    if ((mac[0] & 1) != 0) return shown(raw) + " is a group address: its first octet must be even";
    if (mac == Mac{}) return shown(raw) + " is no address: leave the key out for the default";
    *target = mac;
    return {};
  }

  Wrong operator()(IpAddress* target) const {
    if (text() == nullptr) return shown(raw) + " is not an IP address: write \"10.0.0.1\"";
    const auto address = parse_ip(*text());
    if (!address) return address.error().message;
    *target = *address;
    return {};
  }

  Wrong operator()(net::Prefix* target) const {
    const std::string wrong =
        shown(raw) + " is not an address with a prefix length: write \"10.0.0.1/24\"";
    if (text() == nullptr) return wrong;
    const auto prefix = parse_prefix(*text());
    if (!prefix) return wrong;
    *target = *prefix;
    return {};
  }

  Wrong operator()(InterfaceAddress target) const {
    net::Prefix prefix;
    if (Wrong wrong = (*this)(&prefix)) return wrong;
    *target.address = prefix.address;
    *target.prefix = prefix.length;
    return {};
  }

  Wrong operator()(net::StaticRoute* target) const {
    constexpr std::string_view kVia = " via ";
    const size_t via = text() == nullptr ? std::string::npos : text()->find(kVia);
    if (via != std::string::npos) {
      const auto prefix = parse_prefix(text()->substr(0, via));
      const auto gateway = parse_ip(text()->substr(via + kVia.size()));
      if (prefix && gateway) {
        *target = {*prefix, *gateway};
        return {};
      }
    }
    return shown(raw) + " is not a route: write \"10.1.0.0/16 via 10.0.0.254\"";
  }
};

struct ValueText {
  const Accepted& limits;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  template <typename T>
  requires std::is_unsigned_v<T> std::string operator()(const T* value) const {
    if (!limits.octets) return std::to_string(*value);
    std::string text = octets_text(static_cast<int64_t>(*value));
    return text.back() == 'B' ? quoted(text) : text;
  }
  std::string operator()(const double* value) const { return number_text(*value); }
  std::string operator()(const base::Duration* value) const {
    return quoted(duration_text(*value));
  }
  std::string operator()(const std::string* value) const { return quoted(*value); }
  template <typename T>
  std::string operator()(const std::vector<T>* value) const {
    std::string out;
    for (const T& element : *value) out += (out.empty() ? "" : ", ") + (*this)(&element);
    return "[" + out + "]";
  }
  template <typename T>
  requires std::is_enum_v<T> std::string operator()(const T* value) const {
    return quoted(words_of(value)[static_cast<size_t>(*value)]);
  }
  std::string operator()(const Mac* value) const { return quoted(mac_text(*value)); }
  std::string operator()(const IpAddress* value) const { return quoted(to_string(*value)); }
  std::string operator()(const net::Prefix* value) const {
    return quoted(to_string(value->address) + "/" + std::to_string(value->length));
  }
  std::string operator()(InterfaceAddress value) const {
    const net::Prefix prefix{*value.address, *value.prefix};
    return (*this)(&prefix);
  }
  std::string operator()(const net::StaticRoute* value) const {
    return quoted(to_string(value->to.address) + "/" + std::to_string(value->to.length) + " via " +
                  to_string(value->gateway));
  }
};

struct RangeText {
  const Accepted& limits;

  template <typename T>
  requires std::is_unsigned_v<T> std::string operator()(const T*) const {
    const auto [lo, hi] = limits.range;
    if (limits.octets) return octets_text(lo) + ".." + octets_text(hi);
    const bool all = hi == std::numeric_limits<int64_t>::max();
    return std::to_string(lo) + ".." + (all ? "2^63-1" : std::to_string(hi));
  }
  std::string operator()(const bool*) const { return "true, false"; }
  std::string operator()(const double*) const {
    return std::to_string(limits.range.lo) + ".." + std::to_string(limits.range.hi);
  }
  std::string operator()(const base::Duration*) const {
    return duration_text(base::Duration(limits.range.lo)) + ".." +
           duration_text(base::Duration(limits.range.hi));
  }
  std::string operator()(const std::vector<uint32_t>*) const {
    return "each " + (*this)(static_cast<const uint32_t*>(nullptr));
  }
  template <typename T>
  requires std::is_enum_v<T> std::string operator()(const T* value) const {
    return joined(words_of(value));
  }
  std::string operator()(const Mac*) const { return "a unicast address"; }
  std::string operator()(const std::string*) const { return {}; }
  std::string operator()(const std::vector<std::string>*) const { return {}; }
  std::string operator()(const IpAddress*) const { return "an IP address"; }
  std::string operator()(InterfaceAddress) const { return "address / prefix length"; }
  std::string operator()(const std::vector<net::Prefix>*) const {
    return "each an address / prefix length";
  }
  std::string operator()(const std::vector<net::StaticRoute>*) const {
    return "each \"PREFIX via GATEWAY\"";
  }
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <typename T>
std::optional<T> whole_text(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return value;
}

Raw scalar_from_text(bool takes_numbers, std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return {std::string(text.substr(1, text.size() - 2))};
  }
  if (takes_numbers) {
    if (const auto whole = whole_text<int64_t>(text)) return {*whole};
    if (const auto number = whole_text<double>(text)) return {*number};
  }
  return {std::string(text)};
}

/// Parses a list such as `[a, "b,c"]`, or one element without brackets.
Raw list_from_text(bool takes_numbers, std::string_view text) {
  std::vector<Raw> out;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    out.push_back(scalar_from_text(takes_numbers, text));
    return {out};
  }
  text = text.substr(1, text.size() - 2);
  bool in_quotes = false;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '"') in_quotes = !in_quotes;
    if (i < text.size() && (text[i] != ',' || in_quotes)) continue;
    const std::string_view element = trimmed(text.substr(start, i - start));
    start = i + 1;
    if (!element.empty()) out.push_back(scalar_from_text(takes_numbers, element));
  }
  return {out};
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> assign(const Target& target, const Accepted& limits, const Raw& raw) {
  return std::visit(Assign{limits, raw}, target);
}

Raw raw_from_text(const Target& target, std::string_view text) {
  text = trimmed(text);
  if (std::holds_alternative<bool*>(target) && (text == "true" || text == "false")) {
    return {text == "true"};
  }
  if (std::holds_alternative<std::vector<uint32_t>*>(target)) return list_from_text(true, text);
  if (std::holds_alternative<std::vector<std::string>*>(target) ||
      std::holds_alternative<std::vector<net::Prefix>*>(target) ||
      std::holds_alternative<std::vector<net::StaticRoute>*>(target)) {
    return list_from_text(false, text);
  }
  const bool takes_numbers =
      std::holds_alternative<uint8_t*>(target) || std::holds_alternative<uint16_t*>(target) ||
      std::holds_alternative<uint32_t*>(target) || std::holds_alternative<uint64_t*>(target) ||
      std::holds_alternative<double*>(target);
  return scalar_from_text(takes_numbers, text);
}

std::string value_text(const Target& target, const Accepted& limits) {
  return std::visit(ValueText{limits}, target);
}

std::string range_text(const Target& target, const Accepted& limits) {
  return std::visit(RangeText{limits}, target);
}

uint64_t number_at(const Target& target) {
  return std::visit(
      [](const auto& to) -> uint64_t {
        if constexpr (kIsNumber<std::decay_t<decltype(to)>>) return *to;
        RNIC_CHECK(!"the key takes no whole number");
        return 0;
      },
      target);
}

void set_number(const Target& target, uint64_t value) {
  std::visit(
      [&](const auto& to) {
        using To = std::decay_t<decltype(to)>;
        if constexpr (kIsNumber<To>) {
          *to = static_cast<std::remove_pointer_t<To>>(value);
        } else {
          RNIC_CHECK(!"the key takes no whole number");
        }
      },
      target);
}

std::string octets_text(int64_t value) {
  // 9216 is an MTU, not 9 KB.
  const bool round = value >= 1024 && std::has_single_bit(static_cast<uint64_t>(value));
  return round ? with_unit(value, kSizeUnits) : std::to_string(value);
}

std::string duration_text(base::Duration duration) {
  return duration.count() == 0 ? "0s" : with_unit(duration.count(), kTimeUnits);
}

std::string mac_text(const Mac& mac) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const uint8_t octet : mac) {
    if (!out.empty()) out += ':';
    out += kDigits[octet >> 4];
    out += kDigits[octet & 15];
  }
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // A third of the word may be wrong; beyond that a guess confuses more than it helps.
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  std::string found;
  if (word.size() > 64) return found;
  for (const std::string& candidate : candidates) {
    // The beginning of a name ("markers_send" for markers_send_allowed) is as clear as a small
    // slip.
    size_t distance = edit_distance(word, candidate);
    if (word.size() >= 3 && candidate.starts_with(word)) distance = std::min<size_t>(distance, 1);
    if (candidate.size() >= 3 && word.starts_with(candidate))
      distance = std::min<size_t>(distance, 2);
    if (distance < best && distance < word.size()) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace rnic::settings
