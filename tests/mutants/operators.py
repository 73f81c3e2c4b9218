"""Finds in a source what a careless hand could change: the mutants of the operator table.

A mutant is written as a choice at run time, `rnic_mutant(N) ? changed : original`, so that one build
holds hundreds of them. The places come from clang's syntax tree; constant expressions, templates'
arguments and what macros make are left alone."""

import collections
import re
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # python3-clang-14 of Debian
try:
    from clang import cindex  # noqa: E402
except ImportError:
    sys.exit("mutants: clang's syntax tree is missing: ./scripts/setup installs python3-clang-14")
from clang.cindex import CursorKind as K, TypeKind as T  # noqa: E402

M = "\x00"  # stands for the switch in a text

# begin, end: octets of the source; text: what stands there instead, with M for the switch
Mutant = collections.namedtuple("Mutant", "line operator begin end text before after")

OPERATORS = (
    "removed statement", "skipped reset", "negated condition", "forced condition",
    "relational operator", "logical operator", "arithmetic operator", "off by one",
    "constant changed", "swapped argument", "increment reversed", "early return")

RELATIONAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGICAL = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "*": "+", "/": "*",
              "%": "/"}
ASSIGNMENT = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}
FUNCTIONS = (K.CXX_METHOD, K.FUNCTION_DECL, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION,
             K.FUNCTION_TEMPLATE)
NUMBERS = (T.INT, T.UINT, T.LONG, T.ULONG, T.LONGLONG, T.ULONGLONG, T.SHORT, T.USHORT, T.UCHAR,
           T.SCHAR, T.CHAR_S, T.DOUBLE, T.FLOAT)
RESET = re.compile(r"(=\s*(0|0u|false|nullptr|\{\}|-1|k?Never|base::kNever|base::Now\{\}|[\w:]*None)$)"
                   r"|[.>](clear|reset|cancel|disarm|erase|pop_front|pop|release)\s*\(")
SYMMETRIC = ("min", "max")  # their arguments may change places


class Finder:
    def __init__(self, path, source, arguments):
        self.path, self.source, self.found = path, source, []
        unit = cindex.Index.create().parse(
            path, arguments, unsaved_files=[(path, source.decode())],
            options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        self.macros = [(c.extent.start.offset, c.extent.end.offset)
                       for c in unit.cursor.get_children()
                       if c.kind == K.MACRO_INSTANTIATION and self.is_here(c)]
        self.walk_declarations(unit.cursor)

    def is_here(self, cursor):
        file = cursor.location.file
        return file is not None and file.name == self.path

    def text(self, cursor):
        return self.source[cursor.extent.start.offset:cursor.extent.end.offset].decode()

    def in_macro(self, begin, end):
        return any(b <= begin and end <= e for b, e in self.macros)

    def add(self, cursor, operator, text, after, begin=None, end=None):
        begin = cursor.extent.start.offset if begin is None else begin
        end = cursor.extent.end.offset if end is None else end
        if end < begin or self.in_macro(begin, max(end, begin + 1)):
            return
        before = self.source[begin:end].decode()
        self.found.append(Mutant(self.source.count(b"\n", 0, begin) + 1, operator, begin, end, text,
                                 " ".join(before.split()), " ".join(after.split())))

    def walk_declarations(self, cursor):
        for child in cursor.get_children():
            if child.kind in FUNCTIONS:
                if self.is_here(child):
                    self.walk_function(child)
            elif child.kind in (K.NAMESPACE, K.CLASS_DECL, K.STRUCT_DECL, K.LINKAGE_SPEC,
                                K.UNEXPOSED_DECL, K.CLASS_TEMPLATE):
                self.walk_declarations(child)

    def walk_function(self, function):
        body = next((c for c in function.get_children() if c.kind == K.COMPOUND_STMT), None)
        if body is None:
            return
        head = self.source[function.extent.start.offset:body.extent.start.offset]
        if b"constexpr" in head or b"consteval" in head:
            return
        self.early_return(function, body)
        self.walk(body)

    def early_return(self, function, body):
        result = function.result_type.get_canonical()
        if function.kind in (K.CONSTRUCTOR, K.DESTRUCTOR) or self.text(body).strip("{} \n") == "":
            return
        at = body.extent.start.offset + 1
        values = {T.VOID: [""], T.BOOL: ["false", "true"], T.POINTER: ["nullptr"]}.get(result.kind)
        if values is None:
            if result.kind in (T.LVALUEREFERENCE, T.RVALUEREFERENCE, T.DEPENDENT):
                return
            values = ["{}"]
        for value in values:
            said = f"return {value};".replace(" ;", ";")
            self.add(body, "early return", f" if ({M}) {said}", said, at, at)

    def walk(self, cursor):
        kind = cursor.kind
        if kind in (K.COMPOUND_STMT, K.IF_STMT, K.FOR_STMT, K.WHILE_STMT, K.CXX_FOR_RANGE_STMT):
            self.statements(cursor)
        if kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
            self.condition(cursor)
        if kind == K.BINARY_OPERATOR:
            self.binary(cursor)
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
            self.assignment(cursor)
        elif kind == K.UNARY_OPERATOR:
            self.unary(cursor)
        elif kind in (K.INTEGER_LITERAL, K.CXX_BOOL_LITERAL_EXPR):
            self.literal(cursor)
        elif kind == K.CALL_EXPR:
            self.call(cursor)
        for child in cursor.get_children():
            if child.kind == K.CASE_STMT:  # its label is a constant
                for part in list(child.get_children())[1:]:
                    self.walk_statement_of_label(part)
            elif child.kind == K.DEFAULT_STMT:
                for part in child.get_children():
                    self.walk_statement_of_label(part)
            elif child.kind == K.VAR_DECL and b"constexpr" in self.source[
                    child.extent.start.offset:child.extent.end.offset]:
                continue
            elif child.kind not in (K.TYPE_REF, K.TEMPLATE_REF, K.NAMESPACE_REF,
                                    K.STATIC_ASSERT):
                self.walk(child)

    def walk_statement_of_label(self, part):
        if part.kind == K.CASE_STMT:
            for inner in list(part.get_children())[1:]:
                self.walk_statement_of_label(inner)
            return
        self.statement(part)
        self.walk(part)

    # --- the table ---

    def statements(self, cursor):
        children = list(cursor.get_children())
        if cursor.kind == K.IF_STMT:
            children = children[1:]  # what else is no statement returns nothing below
            children = children[-2:] if len(children) > 1 else children
        elif cursor.kind != K.COMPOUND_STMT:
            children = children[-1:]
        for child in children:
            self.statement(child)

    def statement(self, child):
        """Removes an expression that stands for itself."""
        if not child.kind.is_expression():
            return
        end = child.extent.end.offset
        if self.source[end:end + 1] != b";":
            return
        text = self.text(child)
        operator = "skipped reset" if RESET.search(text) else "removed statement"
        self.add(child, operator, f"({M} ? void() : void({text}))", "")

    def condition(self, cursor):
        children = list(cursor.get_children())
        tested = next((c for c in children if c.kind.is_expression()), None)
        if tested is None or any(c.kind == K.VAR_DECL for c in children):
            return
        text = self.text(tested)
        self.add(tested, "negated condition", f"(static_cast<bool>({text}) != {M})", f"!({text})")
        self.add(tested, "forced condition", f"({M} || ({text}))", "true")
        self.add(tested, "forced condition", f"(!{M} && ({text}))", "false")

    def operator_of(self, left, right):
        between = self.source[left.extent.end.offset:right.extent.start.offset].decode()
        return re.sub(r"//[^\n]*|/\*.*?\*/", "", between).strip()

    def binary(self, cursor):
        left, right = list(cursor.get_children())
        operator = self.operator_of(left, right)
        a, b = self.text(left), self.text(right)
        for name, table in (("relational operator", RELATIONAL), ("logical operator", LOGICAL),
                            ("arithmetic operator", ARITHMETIC)):
            if operator not in table:
                continue
            other = f"({a}) {table[operator]} ({b})"
            same = self.text(cursor)
            self.add(cursor, name, f"({M} ? ({other}) : ({same}))", f"{a} {table[operator]} {b}")
        if operator in ("+", "-") and cursor.type.get_canonical().kind in NUMBERS:
            for change in ("+", "-"):
                self.add(cursor, "off by one", f"(({self.text(cursor)}) {change} {M})",
                         f"{self.text(cursor)} {change} 1")

    def assignment(self, cursor):
        left, right = list(cursor.get_children())
        operator = self.operator_of(left, right)
        if operator not in ASSIGNMENT:
            return
        a, b = self.text(left), self.text(right)
        other = ASSIGNMENT[operator]
        self.add(cursor, "arithmetic operator",
                 f"({M} ? ({a} {other} {b}) : ({a} {operator} {b}))", f"{a} {other} {b}")

    def unary(self, cursor):
        text = self.text(cursor)
        for mine, other in (("++", "--"), ("--", "++")):
            if text.startswith(mine):
                self.add(cursor, "increment reversed",
                         f"({M} ? {other}{text[2:]} : {text})", other + text[2:])

    def literal(self, cursor):
        text = self.text(cursor)
        if cursor.kind == K.CXX_BOOL_LITERAL_EXPR:
            changed = "false" if text == "true" else "true"
            switch = f"!{M}" if text == "true" else M
            self.add(cursor, "constant changed", f"({switch})", changed)
            return
        if not re.fullmatch(r"[0-9'a-fA-FxXuUlLbB]+", text):
            return
        self.add(cursor, "constant changed", f"({text} + {M})", f"{text} + 1")
        if not re.match(r"0[uUlL]*$", text):
            self.add(cursor, "constant changed", f"({text} - {M})", f"{text} - 1")

    def call(self, cursor):
        if cursor.spelling in SYMMETRIC:
            return
        arguments = [a for a in cursor.get_arguments() if a is not None]
        begin = cursor.extent.start.offset
        for first, second in zip(arguments, arguments[1:]):
            x, y = self.text(first), self.text(second)
            same = (first.type.get_canonical().get_unqualified_spelling()
                    if hasattr(first.type, "get_unqualified_spelling")
                    else bare(first)) == bare(second)
            if not same or x == y or not x or not y or first.extent.start.offset <= begin:
                continue
            s = self.source
            head = s[begin:first.extent.start.offset].decode()
            middle = s[first.extent.end.offset:second.extent.start.offset].decode()
            tail = s[second.extent.end.offset:cursor.extent.end.offset].decode()
            if middle.strip() != ",":
                continue
            other = head + y + middle + x + tail
            self.add(cursor, "swapped argument", f"({M} ? {other} : {self.text(cursor)})", other)


def bare(cursor):
    return cursor.type.get_canonical().spelling.replace("const ", "").strip("& ")


def find(path, source, arguments):
    """All mutants of a source. \\param source octets, as they are at `path`."""
    return Finder(path, source, arguments).found


def written(mutant, number):
    """What stands in the place of the original."""
    return mutant.text.replace(M, f"rnic_mutant({number})")
