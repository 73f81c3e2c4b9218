"""Draws the sample: rooms by their lines, operators in turn, lines by chance."""

import hashlib
import json
import os
import random
import shlex
import tomllib

import operators
import rooms
import state

SPARE = 1.3  # some do not compile, some change nothing
NAMED = os.path.join("tests", "mutants", "named.toml")


def quotas(lines, count):
    """count, shared out by the lines; the largest remainders get what is left."""
    total = sum(lines.values())
    exact = {name: count * n / total for name, n in lines.items()}
    share = {name: int(x) for name, x in exact.items()}
    for name in sorted(exact, key=lambda n: share[n] - exact[n])[:count - sum(share.values())]:
        share[name] += 1
    return share


def arguments_of(build, folder):
    """What clang has to know to read a source of this folder."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next(e for e in json.load(file)
                     if e["output"].startswith(folder + "/") and ".a.p/" in e["output"])
    words, found = shlex.split(entry["command"]), []
    for i, word in enumerate(words):
        if word.startswith("-I"):
            found.append("-I" + os.path.normpath(os.path.join(build, word[2:])))
        elif word == "-isystem":
            found += [word, words[i + 1]]
        elif word.startswith(("-D", "-std", "-isystem")):
            found.append(word)
    return found


def named(root):
    """The mutants of named.toml in this tree, as draw() gives them, without ids."""
    with open(os.path.join(root, NAMED), "rb") as file:
        table = tomllib.load(file)["mutant"]
    found = []
    for entry in table:
        with open(os.path.join(root, entry["file"]), "rb") as file:
            source = file.read()
        find = entry["find"].encode()
        if source.count(find) != 1:
            raise ValueError(f"{NAMED}: {entry['name']}: {source.count(find)} times in "
                             f"{entry['file']}: {entry['find']}")
        begin = source.index(find)
        room = next(r.name for r in rooms.ROOMS if entry["file"].startswith(r.folder + "/"))
        found.append({"name": entry["name"], "room": room, "file": entry["file"], "spare": False,
                      "line": source.count(b"\n", 0, begin) + 1, "operator": state.NAMED,
                      "begin": begin, "end": begin + len(find),
                      "text": entry["text"].replace("@", operators.M),
                      "before": entry["what"], "after": ""})
    return found


def places_of(root, path, text, arguments, cache):
    """operators.find(), which takes seconds a file, kept in a folder for the next draw."""
    digest = hashlib.sha1(text + path.encode())
    with open(operators.__file__, "rb") as file:
        digest.update(file.read())
    kept = os.path.join(cache, digest.hexdigest())
    if not os.path.exists(kept):
        os.makedirs(cache, exist_ok=True)
        found = operators.find(os.path.join(root, path), text, arguments)
        with open(kept + ".new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(kept + ".new", kept)
    with open(kept, encoding="utf-8") as file:
        return [operators.Mutant(*fields) for fields in json.load(file)]


def line_of(text, at):
    """The line of an octet, and the one before: the head of a function may be there."""
    end = text.find(b"\n", at)
    begin = text.rfind(b"\n", 0, text.rfind(b"\n", 0, at)) if b"\n" in text[:at] else 0
    return text[max(begin, 0):end].decode().strip()


def draw(root, build, seed, count, cache, say):
    """The mutants of a room beyond its share are spare ones. \\return list of dict, in the order of
    their trial"""
    chance = random.Random(seed)
    texts = {room: {p: open(os.path.join(root, p), "rb").read() for p in rooms.sources(root, room)}
             for room in rooms.ROOMS}
    share = quotas({room.name: sum(map(rooms.code_lines, t.values()))
                    for room, t in texts.items()}, count)
    by_name = named(root)
    chosen = []
    for room, files in texts.items():
        found = {}
        arguments = arguments_of(build, room.folder)
        for path, text in files.items():
            for m in places_of(root, path, text, arguments, cache):
                found.setdefault((path, m.line), []).append(m)
        say(f"{room.name}: {sum(map(len, found.values()))} places on {len(found)} lines, "
            f"{share[room.name]} to be drawn")
        taken = {}
        for m in by_name:
            taken.setdefault(m["file"], []).append((m["line"], m["begin"], m["end"]))
        picked = pick(chance, found, int(share[room.name] * SPARE) + 1, taken)
        chosen += [dict(m._asdict(), room=room.name, file=path, spare=i >= share[room.name],
                        of=line_of(files[path], m.begin))
                   for i, (path, m) in enumerate(picked)]
    chance.shuffle(chosen)
    chosen += by_name
    for number, mutant in enumerate(chosen):
        mutant["id"] = number
    return chosen


def pick(chance, found, count, taken):
    """Mutants that touch neither each other nor what is taken, one a line; every operator has its
    turn. taken: file -> (line, begin, end)"""
    places = {}
    for where, mutants in sorted(found.items()):
        for mutant in mutants:
            places.setdefault(mutant.operator, []).append((*where, mutant))
    picked = []
    while len(picked) < count and places:
        kind = chance.choice(sorted(places))
        path, line, mutant = places[kind].pop(chance.randrange(len(places[kind])))
        if not places[kind]:
            del places[kind]
        ranges = taken.setdefault(path, [])
        if any(line == other or mutant.begin < end and begin < mutant.end
               for other, begin, end in ranges):
            continue
        ranges.append((line, mutant.begin, mutant.end))
        picked.append((path, mutant))
    return picked


def quotas_of(plan):
    """room -> how many of it are to be tried; what is spare does not count."""
    share = {}
    for mutant in plan["mutants"]:
        if "name" not in mutant:
            share[mutant["room"]] = share.get(mutant["room"], 0) + (not mutant["spare"])
    return share


def order(plan):
    """The spare ones behind the others, those with a name last."""
    return sorted(plan["mutants"], key=lambda m: ("name" in m, m["spare"], m["id"]))
