"""Puts many mutations of a C++ file into one text, of which one at a time can be switched on.

A mutation that lies within one function's body becomes a second body beside the original one:

    { if (rnic_mutation::on(0x1a2b3c4du)) { the body without the rule } else { the body as it is } }

So one build holds hundreds of mutations, and each costs no more than a run of the tests that are to
catch it. The initializer of a member becomes a choice of two. What else is declared outside of
functions (constants, tables) cannot be switched; it is left to the caller.
"""

import collections
import re

import cxx_source

# The program reads its mutation from the environment before any other object is initialized.
VARIABLE = "RNIC_MUTATION"
HEADER = """#ifndef RNIC_MUTATION
#define RNIC_MUTATION
namespace rnic_mutation {
extern unsigned active;
constexpr bool on(unsigned number) {
  return !__builtin_is_constant_evaluated() && active == number;
}
}
#endif
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-label"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#pragma GCC diagnostic ignored "-Wdangling-else"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wbool-compare"
"""

SOURCE = f"""#include <cstdlib>
namespace rnic_mutation {{
extern unsigned active;
unsigned active = 0;
[[gnu::constructor(101)]] static void read() {{
  const char* number = std::getenv("{VARIABLE}");
  if (number) active = std::strtoul(number, nullptr, 16);
}}
}}
"""

FUNCTION_END = re.compile(r"(\)|\bconst|\bnoexcept|\boverride|\bfinal|->[^(){};=]*|&&?)\s*$")
INITIALIZERS = re.compile(r"\)\s*(noexcept)?\s*:(?!:)", re.DOTALL)
CONTAINER = re.compile(r'\b(namespace|class|struct|union)\b|extern\s+"')
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)

# clones: [(first line, last line, change)] of the text
Instrumented = collections.namedtuple("Instrumented", "text clones left")


def match_brace(code, at):
    """The index of the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def is_function(head):
    """Whether a brace behind this text, which begins behind the last ; { or }, opens a body."""
    if INITIALIZERS.search(head):
        return not re.search(r"[\w>]\s*$", head)  # else the initializer of a member
    return bool(FUNCTION_END.search(head)) and "(" in head


def function_bodies(text):
    """(index of {, index of }) of each outermost function body."""
    code = cxx_source.without_comments(text)
    code = PREPROCESSOR.sub(cxx_source.blank, code)
    head, at, parentheses = 0, 0, 0
    while at < len(code):
        c = code[at]
        if c in "()":
            parentheses += 1 if c == "(" else -1
        elif c == "{" and parentheses:
            at = match_brace(code, at)
        elif c == "{":
            words = code[head:at]
            if is_function(words):
                end = match_brace(code, at)
                yield at, end
                at, head = end, end + 1
            elif CONTAINER.search(words) and not re.search(r"[=(]\s*$", words):
                head = at + 1
            else:
                at = match_brace(code, at)  # an initializer: what follows belongs to it
        elif c in "};":
            head = at + 1
        elif c == ":" and re.search(r"\b(public|private|protected)\s*$", code[head:at]):
            head = at + 1
        at += 1


MEMBER = re.compile(
    r"^ +(?!.*\b(?:constexpr|static|using)\b)[\w:<>, ]+ \w+ = ([^;{}]+);", re.MULTILINE)


def span_of(text, change, bodies, members):
    """Where the body or the initializer is that a change lies in; None: it lies in none."""
    at = text.find(change.find)
    end = at + len(change.find)
    if at < 0:
        return None
    for first, last in bodies:
        if first < at and end <= last:
            return first, last + 1
    for member in members:
        if member.start() <= at and end <= member.end():
            other = MEMBER.match(text[:at] + change.replace + text[end:], member.start())
            if other and other.start(1) == member.start(1):
                return member.span(1)
    return None


def changed(text, span, changes):
    """The body or the initializer with these changes of it."""
    first, last = span
    after = text
    for change in changes:
        after = after.replace(change.find, change.replace, 1)
    if text[first] == "{":
        return after[first:last + len(after) - len(text)]
    return MEMBER.match(after, after.rfind("\n", 0, first) + 1).group(1)


def instrument(text, changes):
    """The text with all these changes of it to be switched on, those of one number together; left:
    those that cannot be."""
    inside, left = collections.defaultdict(lambda: collections.defaultdict(list)), []
    bodies = list(function_bodies(text))
    members = [m for m in MEMBER.finditer(text)
               if not any(first < m.start() < last for first, last in bodies)]
    for change in changes:
        span = span_of(text, change, bodies, members)
        if span is None:
            left.append(change)
        else:
            inside[span][change.number].append(change)
    out, clones, done = [], [], 0
    for (first, last), numbers in sorted(inside.items()):
        body = text[first] == "{"
        out.append(text[done:first] + ("{\n" if body else ""))
        for number, found in numbers.items():
            line = sum(piece.count("\n") for piece in out) + 1
            on, other = f"rnic_mutation::on(0x{number}u)", changed(text, (first, last), found)
            out.append(f"if ({on}) {other} else\n" if body else f"{on} ? {other} :\n")
            clones += [(line, line + out[-1].count("\n"), change) for change in found]
        out.append(text[first:last] + ("\n}" if body else ""))
        done = last
    out.append(text[done:])
    if not clones:
        return Instrumented(text, clones, left)
    lines = HEADER.count("\n")  # of which a warning about an unused name would be an error
    clones = [(first + lines, last + lines, change) for first, last, change in clones]
    return Instrumented(HEADER + "".join(out), clones, left)
