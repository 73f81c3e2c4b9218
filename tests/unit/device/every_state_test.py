#!/usr/bin/env python3
"""EveryState.* is whole: each public call of a queue pair, each opcode of its send queue, each state
and each change of modify() has its row there, each event is told in one of the cells or is none of a
queue pair, and each cause is brought about in every state, among them each state of a link."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tests/starved"))
from calls_test import members, with_bases, without_comments  # noqa: E402

# A call of the public API, the test that makes it in every state, and what it becomes there.
POST, RECEIVE = ("PostSend_BUG_06", "post_send("), ("PostReceive_BUG_06", "post_receive(")
CALLS = {
    "~QueuePair": ("Destroy_CM_04", "destroy_qp("),
    "destroy": ("Destroy_CM_04", "destroy_qp("),
    "number": ("Report", "number()"),
    "state": ("Modify_VERBS_18", "state()"),
    "query": ("Report", "attributes()"),
    "info": ("Report", "info("),
    "local": ("Report", "info.local"),
    "remote": ("Report", "info.remote"),
    "modify": ("Modify_VERBS_18", "modify_qp("),
    "post_send": POST,
    "post_receive": RECEIVE,
    "connect": ("ConnectAndAccept_CM_01", "connect("),
    "accept": ("ConnectAndAccept_CM_01", "accept("),
    "cancel_connect": ("CancelConnect", "cancel_connect("),
    "commit": ("Commit", "commit("),
    "disconnect": ("Disconnect_CM_04", "disconnect("),
    "drain": ("Drain_BUG_06", "drain("),
    "start_trace": ("TraceAndHeldOctets", "set_trace("),
    "take_trace": ("TraceAndHeldOctets", "set_trace("),
    # One call for each operation: the opcode's row.
    "post_send_invalidate": ("PostSend_BUG_06", "Opcode::SendInvalidate"),
    "post_write": ("PostSend_BUG_06", "Opcode::Write"),
    "post_write_immediate": ("PostSend_BUG_06", "Opcode::WriteImmediate"),
    "post_read": ("PostSend_BUG_06", "Opcode::Read"),
    "post_read_invalidate": ("PostSend_BUG_06", "Opcode::ReadInvalidate"),
    "post_local_invalidate": ("PostSend_BUG_06", "Opcode::LocalInvalidate"),
    "post_fetch_add": ("PostSend_BUG_06", "Opcode::FetchAdd"),
    "post_compare_swap": ("PostSend_BUG_06", "Opcode::CompareSwap"),
    "post_immediate": ("PostSend_BUG_06", "Opcode::Immediate"),
    "post_bind_window": ("PostSend_BUG_06", "Opcode::BindWindow"),
    "post_fast_register": ("PostSend_BUG_06", "Opcode::FastRegister"),
}
CHANGES = {
    "state": ("Modify_VERBS_18", ".state = next"),
    "ird": ("ModifyOfReads", "change.ird"),
    "ord": ("ModifyOfReads", "change.ord"),
    "answer_close": ("ModifyOfTheRest", ".answer_close ="),
    "context": ("ModifyOfTheRest", ".context ="),
    "tcp": ("ModifyOfTheRest", ".tcp ="),
}
# Events that no cell of EveryEvent tells, and why.
ELSEWHERE = {
    "ConnectRequest": "it has no queue pair yet",
    "RequestFailed": "it has no queue pair",
    "Rejected": "it leads to the state Rejected",
    "SrqLimitReached": "a shared receive queue's: shared_receive_test.cpp",
    "SrqHighWater": "a shared receive queue's: shared_receive_test.cpp",
    "LastReceiveDone": "a shared receive queue's: shared_receive_test.cpp",
}
NOT_SENT = {"Receive"}


def enumerators(text, name):
    body = re.search(r"enum class " + name + r"[^{]*\{([^}]*)\}", text)[1]
    return re.findall(r"\b([A-Z]\w*)\b(?=\s*[,=}]|\s*$)", body)


def fields(text, name):
    body = re.search(r"struct " + name + r" \{(.*?)\n\};", text, re.S)[1]
    return re.findall(r"std::optional<[^;]*?>\s+(\w+)\{", body)


def tests_of(text):
    """Name and body of each EveryState test."""
    return {match[1]: match[2] for match in
            re.finditer(r"TEST\(EveryState, (\w+)\) \{\n(.*?)\n\}\n", text, re.S)}


def listed(text, name):
    """The enumerators in an array that is told to have them all."""
    return re.findall(r"\w+::(\w+)", re.search(r" " + name + r"\[\] = \{(.*?)\};", text, re.S)[1])


def rows_of(text):
    """Each state that has a row of cells, and how many those are."""
    table = re.search(r"const Row kRows\[\] = \{\n(.*?)\n\};", text, re.S)[1]
    return {match[1]: len(re.findall(r'"[^"]*"|\bk\w+', match[2]))
            for match in re.finditer(r"\{State::(\w+),\s*\{(.*?)\}\}", table, re.S)}


def spoken(text):
    """The words for each event, as to_string() says them: "peer closed" for PeerClosed."""
    return re.sub(r"(?<!^)([A-Z])", r" \1", text).lower()


def main():
    def read(path):
        return without_comments((SOURCE / path).read_text())

    api, unit = "lib/api/include/rnic/", "tests/unit/device/"
    cells = read(unit + "every_event_test.cpp")
    fixture = read(unit + "every_state.hpp")
    tests = tests_of(read(unit + "operations_test.cpp"))
    calls = {call.split("::")[1]
             for name, body in with_bases([read("lib/verbs/include/rnic/verbs.hpp")])
             if name == "QueuePair" for call in members(name, body)}
    wrong = []
    rows = {"call": (calls, CALLS), "change": (set(fields(read(api + "queue_pair.hpp"),
                                                          "QueuePairChange")), CHANGES)}
    for kind, (found, table) in rows.items():
        wrong += [f"{kind} {one} has no row" for one in sorted(found - set(table))]
        wrong += [f"{kind} {one} is none of a queue pair" for one in sorted(set(table) - found)]
        for one, (test, needle) in sorted(table.items()):
            if "for_each_state(" not in tests.get(test, "") or needle not in tests[test]:
                wrong.append(f"{kind} {one}: EveryState.{test} does not have {needle}")
    opcodes = set(enumerators(read(api + "work.hpp"), "Opcode")) - NOT_SENT
    for opcode in sorted(opcodes):
        if not re.search(rf"Opcode::{opcode}\b", tests["PostSend_BUG_06"]):
            wrong.append(f"opcode {opcode} is not posted in every state")
    states = enumerators(read(api + "queue_pair.hpp"), "QueuePairState")
    for state in states:
        for where, text in (("expected_state()", fixture), ("Modify", tests["Modify_VERBS_18"])):
            if f"QueuePairState::{state}" not in text:
                wrong.append(f"state {state} does not occur in {where}")
    events = re.findall(r"event::(\w+)", re.search(r"using Event =(.*?);",
                                                   read(api + "event.hpp"), re.S)[1])
    for event in events:
        told = re.search(r'"[^"]*\b' + spoken(event) + r"\b", cells) is not None
        if told == (event in ELSEWHERE):
            wrong.append(f"event {event} is told in {'a' if told else 'no'} cell of EveryEvent")
    for kind, array, text in (("State", "kStates", fixture), ("Cause", "kCauses", cells)):
        if enumerators(text, kind) != listed(text, array):
            wrong.append(f"{array} does not list each {kind}")
    causes, rows = listed(cells, "kCauses"), rows_of(cells)
    for cause in causes:
        if not re.search(rf"case Cause::{cause}:", cells):
            wrong.append(f"cause {cause} is not brought about")
    wrong += [f"the row of {state} has {count} cells for {len(causes)} causes"
              for state, count in rows.items() if count != len(causes)]
    for link in enumerators(read("lib/port/port.hpp"), "LinkState"):
        if f"link(port::LinkState::{link})" not in cells:
            wrong.append(f"no cause makes a link {link}")
    print("\n".join(wrong + [f"{len(calls)} calls, {len(opcodes)} opcodes, {len(states)} states, "
                             f"{len(events)} events, {len(causes)} causes"]))
    few = len(calls) < 25 or len(opcodes) < 12 or len(events) < 18 or len(rows) < 9
    return 1 if wrong or few else 0


if __name__ == "__main__":
    sys.exit(main())
