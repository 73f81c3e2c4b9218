"""Builds the programs with all mutants in them, each behind its switch.

The tests' own objects and all libraries that hold no mutant are those of an ordinary build; the rooms'
libraries are made anew, source by source, with the mutants written into copies of the sources and
headers. A header with mutants becomes an object of its own, of all its inline functions. Nothing is
inlined, neither here nor in the tests, and these objects come first when a program is linked: so an
inline function is the mutated one for everybody who calls it."""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
from types import MappingProxyType

import operators
import rooms

HERE = os.path.dirname(os.path.abspath(__file__))


# Of the inline functions that an object of a header keeps, what nobody calls is dropped again.
OBJECT_OF_HEADER = ("-fkeep-inline-functions", "-ffunction-sections", "-x", "c++")
LINK = ("-Wl,--gc-sections",)


class Broken(Exception):
    """The build cannot be made."""


class BrokenInHeader(Exception):
    """Mutants of a header that only a source that uses it shows not to compile: templates."""

    def __init__(self, ids):
        super().__init__(f"mutants {ids} do not compile where they are used")
        self.ids = ids


def run(words, cwd):
    done = subprocess.run(words, cwd=cwd, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Programs:
    def __init__(self, root, build, area, say):
        """root: the sources; build: an ordinary build of them; area: where everything goes"""
        self.root, self.build, self.area, self.say = root, build, area, say
        code, text = run(["meson", "introspect", "--targets", build], root)
        if code != 0:
            raise Broken(text)
        self.archives = {}  # room -> (archive relative to the build, its sources)
        for target in json.loads(text):
            place = os.path.dirname(os.path.relpath(target["defined_in"], root))
            for room in rooms.ROOMS:
                if place == room.folder and target["type"] == "static library":
                    self.archives[room.name] = (
                        os.path.relpath(target["filename"][0], build),
                        [p for p in rooms.sources(root, room) if p.endswith(".cpp")])
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            self.commands = json.load(file)
        self.headers = ""
        self.objects = {}  # archive -> its objects

    def digest_of_headers(self):
        """Of those of the tree and of those with mutants."""
        digest = hashlib.sha1()
        for top in (os.path.join(self.root, "lib"), os.path.join(self.root, "drivers"),
                    os.path.join(self.area, "src")):
            for folder, _, names in sorted(os.walk(top)):
                for name in sorted(n for n in names if n.endswith(".hpp")):
                    with open(os.path.join(folder, name), "rb") as file:
                        digest.update(file.read())
        return digest.hexdigest()

    def place(self, *parts):
        path = os.path.join(self.area, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def compiler(self, archive):
        """The words that compile a source of this library, up to its name."""
        entry = next(e for e in self.commands if e["output"].startswith(archive + ".p/"))
        words, kept, skip = shlex.split(entry["command"]), [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-MQ", "-MF", "-o", "-c"):
                skip = True
            elif word not in ("-MD", "-Werror") and not word.startswith(("-W", "-flto", "-ffat")):
                kept.append(word)
        return kept + ["-O1", "-fno-inline", "-w", "-Wno-narrowing", "-fpermissive",
                       "-fdiagnostics-color=never"]

    def compile(self, archive, source, output, extra=()):
        """\\return nothing, or what the compiler says"""
        words = [*self.compiler(archive), *extra, "-c", source, "-o", output]
        with open(source, "rb") as file:
            key = hashlib.sha1(file.read() + repr(words).encode() + self.headers.encode())
        stamp = output + ".key"
        if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == key.hexdigest():
            return ""
        code, text = run(words, self.build)
        if code != 0:
            return text
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(key.hexdigest())
        return ""

    def write(self, path, mutants, value=None):
        """The source with these mutants in it. value: what the switch is, or the switch itself"""
        with open(os.path.join(self.root, path), "rb") as file:
            text = file.read()
        for m in sorted(mutants, key=lambda m: -m["begin"]):
            new = m["text"].replace(operators.M, value or f"rnic_mutant({m['id']})")
            text = text[:m["begin"]] + new.encode() + text[m["end"]:]
        return text

    def extra(self, path):
        """Words for a source or header that holds mutants."""
        return ("-include", os.path.join(HERE, "switch.hpp"),
                *(word for top in ("lib", "drivers")
                  for word in ("-iquote", os.path.join(self.area, "src", top))),
                "-I" + os.path.dirname(os.path.join(self.root, path)))

    def errors_in(self, path, said):
        """The lines of a file's copy in which the compiler finds an error."""
        copy = re.escape(os.path.join(self.area, "src", path))
        return {int(n) for n in re.findall(copy + r":(\d+):\d+: (?:fatal )?error", said)}

    def blamed(self, path, mutants, said):
        """Those of a file's mutants on whose lines the compiler finds an error."""
        return [m for m in mutants if any(m["line"] <= n <= m["line"] + m["text"].count("\n")
                                          for n in self.errors_in(path, said))]

    def blamed_in_header(self, path, mutants, said):
        """The same, or the nearest: a call that begins lines before its argument is told by its
        begin."""
        return self.blamed(path, mutants, said) or [
            min(mutants, key=lambda m: abs(m["line"] - n))
            for n in list(self.errors_in(path, said))[:1] if mutants]

    @staticmethod
    def keep(path, text):
        """Writes the file unless it is so already."""
        if not os.path.exists(path) or open(path, "rb").read() != text:
            with open(path, "wb") as file:
                file.write(text)

    def object_of(self, archive, path, mutants, headers=MappingProxyType({})):
        """Compiles a source with its mutants; those that do not compile are left out.
        headers: of each header its mutants
        \\return the object, ids that do not compile"""
        source, output = self.place("src", path), self.place("obj", path + ".o")
        extra = (*self.extra(path), *(OBJECT_OF_HEADER if path.endswith(".hpp") else ()))
        bad, left = [], list(mutants)
        while True:
            self.keep(source, self.write(path, left))
            said = self.compile(archive, source, output, extra)
            if not said:
                return output, bad
            wrong = self.blamed(path, left, said)
            used = [m["id"] for header, mine in headers.items()
                    for m in self.blamed_in_header(header, mine, said)]
            if used:
                raise BrokenInHeader(used)
            if not wrong:
                wrong = left  # the error is told elsewhere: none of them is believed
            if not wrong:
                raise Broken(said)
            bad += [m["id"] for m in wrong]
            left = [m for m in left if m not in wrong]

    def make_objects(self, mutants, jobs):
        """\\return ids that do not compile"""
        bad = []
        while True:
            try:
                return bad + self.try_objects([m for m in mutants if m["id"] not in bad], jobs)
            except BrokenInHeader as found:
                bad += found.ids
                self.objects = {}
                for path in {m["file"] for m in mutants if m["id"] in found.ids}:
                    os.remove(self.place("src", path))

    def try_objects(self, mutants, jobs):
        by_file, bad, tasks = {}, [], []
        for m in mutants:
            by_file.setdefault(m["file"], []).append(m)
        headers = {path: mine for path, mine in by_file.items() if path.endswith(".hpp")}
        # A header's object has the inline functions of those that it includes, too, and the linker
        # takes the first of a name: all are written before one is compiled.
        for path, mine in headers.items():
            self.keep(self.place("src", path), self.write(path, mine))
        self.headers = self.digest_of_headers()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for path, mine in by_file.items():
                if path.endswith(".hpp"):  # those without mutants are the tree's
                    archive = self.archives[mine[0]["room"]][0]
                    others = {name: of for name, of in headers.items() if name != path}
                    tasks.append((archive, pool.submit(self.object_of, archive, path, mine,
                                                       others)))
            self.take(tasks, bad)
            of_headers = {path: [m for m in mine if m["id"] not in bad]
                          for path, mine in headers.items()}
            self.headers = self.digest_of_headers()
            tasks = [(archive, pool.submit(self.object_of, archive, path, by_file.get(path, []),
                                           of_headers))
                     for archive, names in self.archives.values() for path in names]
            self.take(tasks, bad)
        return bad

    def take(self, tasks, bad):
        """Puts the objects that these tasks compile behind their archive's others."""
        for archive, task in tasks:
            output, wrong = task.result()
            self.objects.setdefault(archive, []).append(output)
            bad += wrong

    def link_words(self, program):
        code, text = run(["ninja", "-t", "commands", program], self.build)
        if code != 0:
            raise Broken(text)
        return shlex.split(text.strip().splitlines()[-1])

    def inputs_of(self, programs):
        """What has to be built in the ordinary way."""
        mine = {archive for archive, _ in self.archives.values()}
        found = {os.path.normpath(w) for p in programs for w in self.link_words(p)
                 if w.endswith((".o", ".a")) and not os.path.isabs(w)}
        return sorted(found - mine)

    def link(self, program):
        """\\return the program with mutants"""
        words = self.link_words(program)
        output = self.place("bin", program.replace("/", "-"))
        words[words.index("-o") + 1] = output
        first = []
        for word in [w for w in words if os.path.normpath(w) in self.objects]:
            if self.objects[os.path.normpath(word)][0] not in first:
                first += self.objects[os.path.normpath(word)]
            words.remove(word)
        at = words.index("-o") + 2
        words[at:at] = first
        parts = ["switch"] if program == rooms.SIMULATOR else ["switch", "recorder"]
        code, text = run([*words, *LINK, *(self.part(name) for name in parts)], self.build)
        if code != 0:
            raise Broken(f"{program}: {text}")
        return output

    def part(self, name):
        """The object of what every program with mutants has in it."""
        output = self.place("obj", name + ".o")
        said = self.compile(next(iter(self.archives.values()))[0],
                            os.path.join(HERE, name + ".cpp"), output, ("-I" + HERE,))
        if said:
            raise Broken(said)
        return output

    def changes_object(self, mutant):
        """The mutant alone, optimized, gives other code than the original. Of a header every inline
        function is asked for; one that is a template cannot be, so it counts."""
        header = mutant["file"].endswith(".hpp")
        archive = self.archives[mutant["room"]][0]
        source = self.place("alone", os.path.basename(mutant["file"]))
        objects = []
        for value in ("false", "true"):
            with open(source, "wb") as file:
                file.write(self.write(mutant["file"], [mutant], value))
            output = self.place("alone", "one.o")
            said = self.compile(archive, source, output, (
                "-O2", "-finline", "-g0",
                "-I" + os.path.dirname(os.path.join(self.root, mutant["file"])),
                *(("-fkeep-inline-functions", "-x", "c++") if header else ())))
            if said:
                raise Broken(said)
            with open(output, "rb") as file:
                objects.append(file.read())
        with open(os.path.join(self.root, mutant["file"]), encoding="utf-8") as file:
            return objects[0] != objects[1] or header and "template <" in file.read()
