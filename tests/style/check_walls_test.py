#!/usr/bin/env python3
"""Tests of scripts/check_walls: in a copy of the sources without a violation, each kind of
violation that is planted is found, where it is."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class CheckWalls(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        for folder in ("lib", "drivers"):
            shutil.copytree(os.path.join(ROOT, folder), os.path.join(self.top, folder))
        os.mkdir(os.path.join(self.top, "docs"))
        os.mkdir(os.path.join(self.top, "scripts"))
        for path in ("docs/owners.md", "scripts/check_walls", "scripts/cxx_source.py"):
            shutil.copy(os.path.join(ROOT, path), os.path.join(self.top, path))

    def plant(self, path, before, text):
        """`text` in front of the one line of a file that begins with `before`; at the end without
        one."""
        name = os.path.join(self.top, path)
        lines = []
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                lines = file.read().splitlines()
        at = len(lines)
        if before is not None:
            (at,) = [i for i, line in enumerate(lines) if line.startswith(before)]
        lines[at:at] = text.splitlines()
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def found(self, *arguments):
        run = subprocess.run([sys.executable, os.path.join(self.top, "scripts/check_walls"),
                              *arguments], capture_output=True, text=True, check=False)
        return run.stdout

    def test_the_tree_has_none(self):
        self.assertEqual(self.found(), "check_walls: 0 violations\n")

    def test_state_that_is_given_away(self):
        self.plant("lib/device/silence_watch.hpp", " private:", """\
  llp::Admission& on_one_line() { return silent_; }
  [[nodiscard]] llp::Admission& on_several(
      int which) {
    check(which);
    return silent_;
  }
  int& behind() { return *deep_; }
  base::Now& element(int i) { return moments_[i]; }
  int& of_pointer() { return deep_->value; }
  int& of_member() { return plain_.value; }
  int* address() { return &plain_; }
  const llp::Admission& only_read() const { return silent_; }
  int& defined_outside();""")
        self.plant("lib/device/silence_watch.hpp", "  const Limits& limits_;",
                   "  llp::Admission& inside() { return silent_; }")
        self.plant("lib/device/silence_watch.cpp", "void SilenceWatch::on_timers", """\
int& SilenceWatch::defined_outside() {
  return deep_->value;
}
""")
        said = self.found()
        for name in ("on_one_line", "on_several", "behind", "element", "of_pointer", "of_member",
                     "address", "defined_outside"):
            self.assertIn(f" {name}() gives ", said)
        for name in ("only_read", "inside"):
            self.assertNotIn(f" {name}() gives ", said)

    def test_state_that_is_given_away_in_any_room(self):
        self.plant("lib/mem/more.hpp", None, """\
class More {
 public:
  std::vector<int>& mine() { return mine_; }

 private:
  struct Inner {
    int& of_inner() { return value_; }
    int value_;
  };
  int& inside() { return value_; }
};""")
        self.plant("drivers/pcap/more.hpp", None,
                   "struct More {\n  int& mine() { return mine_; }\n};")
        said = self.found()
        for place in ("lib/mem/more.hpp:3: mine()", "lib/mem/more.hpp:7: of_inner()",
                      "drivers/pcap/more.hpp:2: mine()"):
            self.assertIn(f"{place} gives ", said)
        self.assertNotIn("inside() gives ", said)

    def test_an_exception_of_what_nobody_gives_away(self):
        path = os.path.join(self.top, "drivers/sim/link.hpp")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("SimPort& a() {", "const SimPort& a() {")
                       .replace("  friend class Link;", ""))
        said = self.found()
        self.assertIn("drivers/sim/link.hpp:1: a() gives nothing away any more", said)
        self.assertIn("Link is no friend of SimPort any more", said)

    def test_a_part_that_knows_its_whole(self):
        # A ConnectionTable has the watch; the service has the table.
        self.plant("lib/device/silence_watch.hpp", "  const Limits& limits_;",
                   "  void ask(ConnectionTable& table);\n  ConnectionService* service_ = nullptr;")
        self.plant("lib/rdmap/completions.hpp", "  bool flushing_", "  Endpoint::Impl& endpoint_;")
        self.plant("drivers/socket/unsent.hpp", " private:", " private:\n  Transport& transport_;")
        said = self.found()
        self.assertIn("SilenceWatch takes its whole: ConnectionTable& table", said)
        self.assertIn("SilenceWatch takes its whole: ConnectionService* service_", said)
        self.assertIn("whole: Endpoint::Impl& endpoint_", said)
        self.assertIn("whole: Transport& transport_", said)

    def test_a_decision_by_opcode(self):
        self.plant("lib/rdmap/more.cpp", None, """\
int f(Opcode opcode, const SendSlot& slot, uint8_t control) {
  if (opcode == Opcode::Write) return 1;
  if (Opcode::Write != opcode) return 2;
  switch (opcode) {
    case rnic::Opcode::Send: return 3;
  }
  if (is_atomic(opcode) || has_response(slot.work->opcode)) return 4;
  if (wire::rdmap_opcode(control) == static_cast<uint8_t>(WireOpcode::Write)) return 5;
  if (slot.row->has_response()) return 6;
  completion.opcode = Opcode::Receive;
}
static_assert(kRow.opcode == Opcode::Write);""")
        said = self.found()
        for line in (2, 3, 5, 7, 8):
            self.assertIn(f"lib/rdmap/more.cpp:{line}: ", said)
        for line in (9, 10, 12):
            self.assertNotIn(f"lib/rdmap/more.cpp:{line}: ", said)

    def test_a_chapter_of_another_class(self):
        chapter = "void ConnectionTable::more() {\n" + "  f();\n" * 1500 + "}"
        self.plant("lib/device/more.hpp", None, "void f();")
        self.plant("lib/device/more.cpp", None, chapter)
        self.assertIn("lib/device: 1502 of ", self.found())
        self.plant("lib/device/more.hpp", None, "class ConnectionTable {\n};")
        self.assertNotIn("lib/device: ", self.found())

    def test_a_writer_that_is_no_owner(self):
        self.plant("lib/device/more.cpp", None, """\
void Connection::more() {
  outcome_reported_ = true;
  ++fell_back_;
}""")
        self.plant("lib/tcp/more.cpp", None, "void f(Tcb& tcb) { tcb.snd_una = tcb.snd_nxt; }")
        said = self.found()
        self.assertIn("lib/device/more.cpp:1: Connection::outcome_reported_ is written", said)
        self.assertIn("lib/device/more.cpp:1: Connection::fell_back_ is written", said)
        self.assertIn("lib/tcp/more.cpp:1: Tcb::snd_una is the flight's to write", said)

    def test_a_timer_that_another_part_starts_or_stops(self):
        self.plant("lib/tcp/more.cpp", None, """\
void f(ConnectionCore& core, Timer which) {
  core.timers.set(Timer::Rto, now);
  core.timers.clear(Timer::Persist);
  core.timers.set(which, now);
  core.timers.set(
      which == Timer::Rto ? Timer::Rto : Timer::Probe, now);
  if (core.timers.runs(Timer::Rto)) return;
  core.tcb.clear(nothing);
}""")
        self.plant("lib/tcp/timers.hpp", "  Life, ", "  Other,")
        said = self.found()
        self.assertIn("lib/tcp/more.cpp:2: Timer::Rto is started here, by somebody who", said)
        self.assertIn("lib/tcp/more.cpp:3: Timer::Persist is stopped here, by somebody who", said)
        self.assertIn("lib/tcp/more.cpp:4: set() of a timer without a name", said)
        self.assertIn("lib/tcp/more.cpp:5: set() of a timer without a name", said)
        self.assertNotIn("lib/tcp/more.cpp:7", said)
        self.assertNotIn("lib/tcp/more.cpp:8", said)
        self.assertIn("lib/tcp/timers.hpp:1: Timer::Other is in the enumeration or in", said)

    def test_a_part_that_changes_what_it_may_only_read(self):
        self.plant("lib/tcp/more.cpp", None, """\
void f(ConnectionCore& core, Flight& flight, Life& other) {
  core.life.end();
  core.ecn.hold();
  core.timers.stop();
  core.end();
  if (core.life.over()) flight.undo();
  auto& expected = core.prediction;
  const Timers& timers = core.timers;
}""")
        self.plant("lib/tcp/life.hpp", "  void end();", "  bool more(int (*f)(int));")
        said = self.found()
        for line, what in ((2, "Life::end"), (3, "EcnState::hold"), (4, "Timers::stop"),
                           (5, "ConnectionCore::end")):
            self.assertIn(f"lib/tcp/more.cpp:{line}: {what}() is called here, by somebody", said)
        self.assertIn("lib/tcp/more.cpp:1: Life has another name here: other", said)
        self.assertIn("lib/tcp/more.cpp:7: Prediction has another name here: expected", said)
        for line in (6, 8):
            self.assertNotIn(f"lib/tcp/more.cpp:{line}:", said)
        self.found("--accept")
        with open(os.path.join(self.top, "docs/owners.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("| `more` | nobody |", page)
        self.assertIn("| `end` | connection_core, more |", page)
        self.assertNotIn("| `over` |", page)

    def test_a_reference_to_what_another_class_writes(self):
        self.plant("lib/tcp/persist.hpp", " private:", " private:\n  uint64_t& next_;")
        self.assertIn("next_ is a reference to a member of another class", self.found())

    def test_what_a_function_that_is_deleted_is_called(self):
        self.assertNotIn("`delete`", self.found("--writers", "Timers", "lib/tcp/timers.hpp"))
        with open(os.path.join(ROOT, "docs/owners.md"), encoding="utf-8") as file:
            self.assertNotIn("`delete`", file.read())

    def test_an_owner_that_cannot_recount_what_it_has(self):
        self.plant("lib/tcp/more.hpp", None, """\
class More {
 public:
  void add() { ++sum_; }

 private:
  int sum_ = 0;
};
class Constant {
 public:
  explicit Constant(int value) : value_(value) {}

 private:
  int value_;
};
class Recounted {
 public:
  void add() { ++total_; }
  void validate() const { RNIC_CHECK(total_ >= 0); }

 private:
  int total_ = 0;
};""")
        self.plant("lib/rdmap/rtr_message.hpp", " private:", "  void validate() const;")
        said = self.found()
        self.assertIn("lib/tcp/more.hpp:1: More has no validate()", said)
        self.assertNotIn("Constant has no", said)
        self.assertNotIn("Recounted has no", said)
        self.assertIn("lib/rdmap:1: RtrMessage needs no exception", said)

    def test_a_const_function_that_changes_something(self):
        self.plant("lib/tcp/more.cpp", None, """\
void More::count() const {
  ++counters_.more;
}
bool More::same(int other) const { return sum_ == other; }
void More::elsewhere(Counters& counters) const noexcept {
  ++counters.more;
  const int sum = sum_ + 1;
}
uint32_t More::last() const {
  hint_ = 3;
  return list_[0].next_ = 2;
}
void More::may() { ++counters_.more; }""")
        said = self.found()
        self.assertIn("lib/tcp/more.cpp:2: a const function changes counters_", said)
        self.assertIn("lib/tcp/more.cpp:10: a const function changes hint_", said)
        self.assertIn("lib/tcp/more.cpp:11: a const function changes list_", said)
        for line in (4, 5, 6, 7, 13):
            self.assertNotIn(f"lib/tcp/more.cpp:{line}: a const", said)

    def test_friends_and_planted_defects(self):
        self.plant("lib/device/silence_watch.hpp", " private:", "  friend class Device;")
        self.plant("lib/device/more.cpp", None, "// a sabotage")
        said = self.found()
        self.assertRegex(said, r"lib/device/silence_watch.hpp:\d+: Device is a friend of "
                               r"SilenceWatch, and nobody says why")
        self.assertIn("lib/device/more.cpp:1: a planted defect belongs in", said)

    def test_a_word_that_is_said_twice(self):
        self.plant("lib/net/more.hpp", None, """\
enum class Colour : uint8_t { Red, Green, Blue, Black };
enum class TwoOfThem { kRed, GREEN, White };
enum OfOneName : uint8_t { North, South, East };
enum class Nothing { Up, Down, Left };
enum { Red2, Green2, Blue2 };""")
        self.plant("drivers/socket/more.hpp", None, """\
struct Paint {
  // enum class Comment { Up, Down, Left };
  enum class Hue : uint8_t {
    kBlue,  ///< Up, Down, Left
    kGreen = 3,
    kRed,
  };
};
enum class OfOneName { West, South, East };""")
        said = self.found()
        self.assertRegex(said, r"(drivers/socket|lib/net)/more.hpp:\d: \w+ says blue, green, red as "
                               r"\w+ in (drivers/socket|lib/net)/more.hpp:\d does: let it stand once")
        self.assertIn(": OfOneName says east, south as OfOneName in ", said)
        self.assertIn("check_walls: 2 violations", said)

    def test_an_exception_of_twins_that_are_none(self):
        path = os.path.join(self.top, "lib/mpa/start_state.hpp")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("StartState", "StepOfAStart"))
        said = self.found()
        self.assertIn("lib/mpa StartState and lib/tuf StartState are no twins any more", said)
        self.assertIn("says ", said)

    def test_a_class_that_is_too_large(self):
        body = "".join(f"  void f{i}();\n" for i in range(91)) + \
               "".join(f"  int m{i}_;\n" for i in range(26))
        self.plant("lib/device/more.hpp", None, "class More {\n public:\n" + body + "};")
        said = self.found()
        self.assertIn("More has 91 member functions, at most 90", said)
        self.assertIn("More has 26 data members, at most 25", said)

    def test_a_page_of_another_tree(self):
        self.plant("docs/owners.md", None, "something")
        self.assertIn("docs/owners.md:1: it tells of another tree", self.found())


if __name__ == "__main__":
    unittest.main()
