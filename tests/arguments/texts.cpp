// configuration.hpp, resolve.hpp, and the texts of address.hpp.

#include "rnic/resolve.hpp"
#include "values.hpp"

namespace rnic::arguments {

namespace {

using Texts = Values<std::string>;

std::string devices() { return starved::config_text({starved::Below::Wire, false}); }

Value<std::string> text(Class of, const char* said, std::string given, Expected expected = {}) {
  return value<std::string>(of, said, std::move(given), std::move(expected));
}

void add_configurations(Table& table) {
  table.row(
      "Config::from_file path", two_ends,
      [](World&, const std::string& path) { return of(Config::from_file(path)); },
      Texts{text(Class::AtLimit, "one that can be read", "/dev/null"),
            text(Class::Empty, "nothing", "", refused(ErrorCode::NotFound, {"cannot be opened"})),
            with_zero("/dev/null", wrong({"octet of 0"})),
            text(Class::Beyond, "longer than a path", std::string(10'000, 'a'),
                 refused(ErrorCode::NotFound, {"cannot be opened"})),
            text(Class::Illegal, "a directory", "/",
                 refused(ErrorCode::Environment, {"cannot be read"}))});
  table.row(
      "Config::from_text text", two_ends,
      [](World&, const std::string& given) { return Config::from_text(given, "here").check(); },
      Texts{text(Class::AtLimit, "two devices", devices()),
            text(Class::Empty, "nothing", "", wrong({"here", "device"})),
            text(Class::Illegal, "no TOML", "[", wrong({"here"})),
            with_zero(devices(), wrong({"here"})),
            text(Class::Illegal, "a name with an octet of 0",
                 "[[device]]\nname = \"rnic0\"\nport = \"local:/tmp/a\\u0000b\"\n",
                 wrong({"here", "octet of 0"})),
            text(Class::Illegal, "an address with an octet of 0",
                 "[[device]]\nname = \"rnic0\"\naddress = \"10.0.0.1\\u0000b/24\"\n",
                 wrong({"here", "10.0.0.1"})),
            text(Class::Illegal, "a key that there is not", devices() + "\ncolour = \"red\"\n",
                 wrong({"here", "colour"}))});
  table.row(
      "Config::from_text name", two_ends,
      [](World&, const std::string& name) { return Config::from_text("[", name).check(); },
      Texts{text(Class::AtLimit, "a long one", std::string(1000, 'n'), wrong({"nnnn"})),
            with_zero("here", wrong({"here"})), text(Class::Empty, "nothing", "", wrong({"1"}))});
  const auto set = [](World&, const std::string& assignment) {
    return Config::from_text(devices(), "here").set(assignment).check();
  };
  table.row("Config::set assignment", two_ends, set,
            Texts{text(Class::AtLimit, "the largest value", "tcp.max_listeners=65535"),
                  text(Class::Beyond, "one more", "tcp.max_listeners=65536",
                       wrong({"tcp.max_listeners", "65535"})),
                  text(Class::Empty, "nothing", "", wrong({"="})),
                  with_zero("tcp.max_listeners=1", wrong({"tcp.max_listeners"})),
                  text(Class::Illegal, "a key that there is not", "tcp.colour=1",
                       wrong({"tcp.colour"}))});
  table.row(
      "Context::open config", two_ends,
      [](World&, const Config& config) { return of(Context::open(config)); },
      Values<Config>{
          value<Config>(Class::AtLimit, "two devices", Config::from_text(devices(), "here")),
          value<Config>(Class::Empty, "of no text", Config::from_text("", "here"),
                        wrong({"here", "device"})),
          value<Config>(Class::Illegal, "no TOML", Config::from_text("[", "here"),
                        wrong({"here"}))});
}

void add_faults(Table& table) {
  table.row(
      "parse_planned_fault text", two_ends,
      [](World&, const std::string& given) { return of(parse_planned_fault(given)); },
      Texts{text(Class::AtLimit, "the last FPDU", "drop fpdu 4294967295 of message 4294967295"),
            text(Class::AtLimit, "the longest stall", "stall the responder 60min at request 1"),
            text(Class::Beyond, "the message before the first", "drop fpdu 1 of message 0",
                 wrong({"\"0\"", "from 1 on"})),
            text(Class::Beyond, "a longer stall", "stall the responder 61min", wrong({"61min"})),
            text(Class::Empty, "nothing", "", wrong({"no fault"})),
            text(Class::Illegal, "an octet of 0", std::string("terminate\0now", 13),
                 wrong({"no fault"}))});
}

void add_addresses(Table& table) {
  table.row(
      "parse_ip text", two_ends,
      [](World&, const std::string& given) { return of(parse_ip(given)); },
      Texts{text(Class::AtLimit, "the last address", "255.255.255.255"),
            text(Class::AtLimit, "the last one of IPv6", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            text(Class::Beyond, "an octet of 256", "256.0.0.1", wrong({"256.0.0.1"})),
            text(Class::Empty, "nothing", "", wrong({"address"})),
            with_zero("10.0.0.1", wrong({"10.0.0.1", "address"})),
            with_zero("fd00::1", wrong({"fd00::1", "address"})),
            text(Class::Illegal, "a name", "host", wrong({"host"}))});
  const Texts ends = {text(Class::AtLimit, "the last port", "10.0.0.1:65535"),
                      text(Class::AtLimit, "of IPv6", "[fd00::1]:80"),
                      text(Class::Beyond, "a port more", "10.0.0.1:65536", wrong({"65536"})),
                      with_zero("10.0.0.1", wrong({"10.0.0.1"}), ":80"),
                      with_zero("[fd00::1", wrong({"fd00::1"}), "]:80"),
                      with_zero("10.0.0.1:80", wrong({"10.0.0.1"})),
                      text(Class::Illegal, "a name", "host:80", wrong({"host"}))};
  table.row(
      "parse_endpoint text", two_ends,
      [](World&, const std::string& given) { return of(parse_endpoint(given)); },
      ends + Texts{text(Class::Empty, "nothing", "", wrong({"address with a port"}))});
  table.row(
      "parse_endpoint text", two_ends,
      [](World&, const std::string& given) { return of(parse_endpoint(given, 80)); },
      ends + Texts{text(Class::Empty, "nothing with a port beside it", "")});
  table.row(
      "parse_endpoint port", two_ends,
      [](World&, uint16_t port) { return of(parse_endpoint("10.0.0.1", port)); },
      whole<uint16_t>());
  table.row(
      "resolve host", two_ends,
      [](World&, const std::string& host) { return of(resolve(host, kPort)); },
      Texts{text(Class::AtLimit, "an address", "10.0.0.2"),
            text(Class::Empty, "nothing", "", wrong({"resolve", "name"})),
            text(Class::Beyond, "longer than a name", std::string(255, 'a'),
                 wrong({"resolve", "255", "254"})),
            with_zero("10.0.0.2", wrong({"resolve"}))});
  table.row(
      "resolve port", two_ends, [](World&, uint16_t port) { return of(resolve("10.0.0.2", port)); },
      whole<uint16_t>());
}

}  // namespace

void add_texts(Table& table) {
  add_configurations(table);
  add_addresses(table);
  add_faults(table);
}

}  // namespace rnic::arguments
