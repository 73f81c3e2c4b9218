#include "session.hpp"

#include <algorithm>

#include "trial.hpp"

namespace rnic::siw {

namespace {

constexpr uint32_t kMoving = 3;  // rounds

Target target_of(const nlohmann::ordered_json& command) {
  Target target{{parse_ip(command.at("address")).value(), command.at("port")}, {}};
  if (command.contains("revision")) {
    target.options.start.revision = command["revision"].get<uint8_t>();
  }
  if (command.contains("rtr")) target.options.peer_to_peer = command["rtr"].get<bool>();
  return target;
}

RpingOptions rping_of(const nlohmann::ordered_json& command) {
  return {command.value("size", 64u), command.value("count", 10u), command.value("patience", 60)};
}

bool is_rping(const nlohmann::ordered_json& command) { return command.at("kind") == "rping"; }

}  // namespace

std::unique_ptr<Conversation> Session::make_caller(const Json& command, uint32_t index) {
  if (is_rping(command)) return std::make_unique<Rping>(context_, device_, rping_of(command));
  std::vector<uint8_t> octets = from_hex(command.at("plan"));
  const uint64_t seed = Plan::decode(octets).value().seed + index;
  set_seed(octets, seed);
  return std::make_unique<Trial>(context_, device_, *Plan::decode(octets), octets);
}

std::unique_ptr<Conversation> Session::make_answerer(const Json& command,
                                                     const event::ConnectRequest& request) {
  if (is_rping(command)) return std::make_unique<Rping>(context_, device_, rping_of(command));
  auto plan = Plan::decode(request.private_data);
  if (!plan) return nullptr;
  return std::make_unique<Trial>(context_, device_, std::move(*plan), request.private_data);
}

void Session::dispatch(Conversations& conversations, const Event& event) {
  for (auto& conversation : conversations) {
    if (conversation && !conversation->finished() && conversation->qp() == common(event).qp) {
      conversation->on_event(event);
    }
  }
}

void Session::drive(Conversations& conversations, const std::function<bool()>& more) {
  context_.wait_until(
      [&] {
        const bool wanted = more();
        bool busy = wanted;
        for (auto& conversation : conversations) {
          conversation->step();
          busy = busy || !conversation->finished();
        }
        return !busy || workload::interrupted();
      },
      kForever);
}

std::map<std::string, uint64_t> Session::counters() const {
  std::map<std::string, uint64_t> values;
  for (const Counter& counter : device_.counters()) {
    values[counter.layer + "." + counter.name] = counter.value;
  }
  return values;
}

Session::Json Session::counters_since(const std::map<std::string, uint64_t>& before) const {
  Json grown = Json::object();
  for (const auto& [name, value] : counters()) {
    const auto old = before.find(name);
    const uint64_t was = old == before.end() ? 0 : old->second;
    if (value > was) grown[name] = value - was;
  }
  return grown;
}

Session::Json Session::result(const Conversations& conversations) {
  Json list = Json::array();
  bool ok = true;
  for (const auto& conversation : conversations) {
    list.push_back(conversation->report());
    ok = ok && list.back()["ok"].get<bool>();
  }
  return {{"ok", ok}, {"connections", list}};
}

/// Tells once that all conversations are in the midst of their work.
void Session::announce(const Json& command, const Conversations& conversations, const Say& say) {
  if (!command.value("announce", false) || announced_) return;
  announced_ = std::all_of(conversations.begin(), conversations.end(), [](const auto& one) {
    return one->report().value("rounds", 0u) > kMoving;
  });
  if (announced_) say({{"moving", true}});
}

Session::Json Session::connect(const Json& command, const Say& say) {
  Conversations conversations;
  for (uint32_t i = 0; i < command.value("qps", 1u); ++i) {
    conversations.push_back(make_caller(command, i));
    if (Status status = conversations.back()->connect(target_of(command)); !status) {
      return {{"ok", false}, {"error", status.error().message}};
    }
  }
  drive(conversations, [&] {
    while (const auto event = device_.poll_event()) dispatch(conversations, *event);
    announce(command, conversations, say);
    return false;
  });
  return result(conversations);
}

Session::Json Session::serve(const Json& command, const Say& say) {
  const uint16_t port = command.at("port");
  const size_t wanted = command.value("qps", 1u);
  const int64_t end =
      context_.now().count() + command.value("patience", 60) * int64_t{1'000'000'000};
  if (const auto status = device_.listen(port); !status) {
    return {{"ok", false}, {"error", status.error().message}};
  }
  say({{"listening", port}});
  Conversations conversations;
  drive(conversations, [&] {
    while (const auto event = device_.poll_event()) {
      const auto* asked = std::get_if<event::ConnectRequest>(&*event);
      if (asked == nullptr) {
        dispatch(conversations, *event);
      } else if (auto made = make_answerer(command, *asked);
                 made && made->accept(asked->request).has_value()) {
        conversations.push_back(std::move(made));
      } else {
        static_cast<void>(device_.reject(asked->request));
      }
    }
    if (conversations.size() == wanted) announce(command, conversations, say);
    return conversations.size() < wanted && context_.now().count() < end;
  });
  Json told = result(conversations);
  if (conversations.size() < wanted) {
    told["ok"] = false;
    told["error"] = std::to_string(conversations.size()) + " of " + std::to_string(wanted) +
                    " connections came";
  }
  static_cast<void>(device_.unlisten(port));
  return told;
}

/// One connection after the other; only the failures are told in full.
Session::Json Session::connections(const Json& command) {
  const uint32_t count = command.at("count");
  Json failures = Json::array();
  for (uint32_t i = 0; i < count && !workload::interrupted(); ++i) {
    Conversations one;
    one.push_back(make_caller(command, i));
    Status status = one.back()->connect(target_of(command));
    if (status) {
      drive(one, [&] {
        while (const auto event = device_.poll_event()) dispatch(one, *event);
        return false;
      });
    }
    Json told =
        status ? one.back()->report() : Json{{"ok", false}, {"error", status.error().message}};
    told["number"] = i + 1;
    if (!told["ok"]) failures.push_back(told);
  }
  return {{"ok", failures.empty()},
          {"count", count},
          {"failed", failures.size()},
          {"failures", failures}};
}

/// Says no to one request, with private data.
Session::Json Session::reject(const Json& command, const Say& say) {
  const uint16_t port = command.at("port");
  const std::string text = command.value("data", "");
  if (const auto status = device_.listen(port); !status) {
    return {{"ok", false}, {"error", status.error().message}};
  }
  say({{"listening", port}});
  bool rejected = false;
  context_.wait_until(
      [&] {
        while (const auto event = rejected ? std::nullopt : device_.poll_event()) {
          const auto* asked = std::get_if<event::ConnectRequest>(&*event);
          if (asked == nullptr) continue;
          const auto* octets = reinterpret_cast<const uint8_t*>(text.data());
          rejected = device_.reject(asked->request, {octets, text.size()}).has_value();
        }
        return rejected && device_.quiescent();
      },
      std::chrono::seconds(command.value("patience", 60)));
  static_cast<void>(device_.unlisten(port));
  return {{"ok", rejected}};
}

Session::Json Session::run(const Json& command, const Say& say) {
  const auto before = counters();
  announced_ = false;
  const std::string verb = command.at("do");
  Json told;
  if (verb == "connect") {
    told = connect(command, say);
  } else if (verb == "serve") {
    told = serve(command, say);
  } else if (verb == "connections") {
    told = connections(command);
  } else if (verb == "reject") {
    told = reject(command, say);
  } else {
    return {{"ok", false}, {"error", "unknown command " + verb}};
  }
  told["quiescent"] =
      context_.wait_until([&] { return device_.quiescent(); }, std::chrono::seconds(10));
  told["counters"] = counters_since(before);
  return told;
}

}  // namespace rnic::siw
