/// \file
/// Intrusive doubly linked list of connections: one link member a list.
#pragma once

#include "base/check.hpp"

namespace rnic::tcp {

class Connection;

struct ConnectionLink {
  Connection* next = nullptr;
  Connection* prev = nullptr;
  bool linked = false;
};

/// FIFO over the link member `Link` of Connection (a pointer to member, given by the accessor F).
template <auto Link>
class ConnectionList {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] Connection* front() const { return head_; }

  void push_back(Connection& c) {
    ConnectionLink& link = Link(c);
    if (link.linked) return;
    link = {nullptr, tail_, true};
    if (tail_ != nullptr) {
      Link(*tail_).next = &c;
    } else {
      head_ = &c;
    }
    tail_ = &c;
  }

  void erase(Connection& c) {
    ConnectionLink& link = Link(c);
    if (!link.linked) return;
    (link.prev != nullptr ? Link(*link.prev).next : head_) = link.next;
    (link.next != nullptr ? Link(*link.next).prev : tail_) = link.prev;
    link = {};
  }

 private:
  Connection* head_ = nullptr;
  Connection* tail_ = nullptr;
};

}  // namespace rnic::tcp
