"""Whether each header compiles alone.

Most of the time of compiling a header alone goes into the standard library, which is compiled once
here, for all of them. What a header then would not miss, is looked for in its text: each name of
the standard library needs one of the headers that bring it, included by the header itself or by a
header of the tree that it includes.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import tempfile

import cxx_source

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
INSTALLED = ("lib/api/include", "lib/verbs/include")
PATHS = ("lib", "drivers", *INSTALLED, "apps", "tests", "tests/sim")
PACKAGES = ("libisal", "libdpdk", "spdlog", "tomlplusplus", "nlohmann_json", "CLI11", "gtest",
            "gmock")

# Header of the standard library: names in namespace std that it brings.
BROUGHT_BY = {
    "algorithm": "all_of any_of clamp copy copy_backward copy_n count count_if equal equal_range "
                 "fill fill_n find find_if generate lower_bound max max_element min min_element "
                 "minmax none_of partition ranges remove remove_if replace reverse rotate search "
                 "shuffle sort stable_sort transform unique upper_bound",
    "array": "array to_array",
    "atomic": "atomic atomic_flag atomic_ref atomic_thread_fence memory_order memory_order_acq_rel "
              "memory_order_acquire memory_order_relaxed memory_order_release "
              "memory_order_seq_cst",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit "
           "popcount rotl rotr",
    "bitset": "bitset",
    "charconv": "from_chars to_chars",
    "chrono": "chrono nano",
    "cmath": "abs ceil exp floor log log2 pow round sqrt",
    "compare": "strong_ordering partial_ordering",
    "concepts": "convertible_to derived_from integral invocable same_as unsigned_integral",
    "condition_variable": "condition_variable",
    "coroutine": "coroutine_handle suspend_always suspend_never",
    "cstdio": "fclose fflush fopen fprintf fputs fread fwrite perror printf snprintf",
    "cstddef": "byte max_align_t",
    "cstdlib": "abort atoi calloc exit getenv malloc free strtoul",
    "cstring": "memchr memcmp memcpy memmove memset strcmp strerror strlen",
    "deque": "deque",
    "exception": "exception exception_ptr current_exception rethrow_exception terminate",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream",
    "functional": "function greater hash less plus ref cref reference_wrapper bind_front",
    "future": "future promise async",
    "initializer_list": "initializer_list",
    "ios": "ios",
    "iostream": "cerr cout cin",
    "istream": "istream",
    "iterator": "back_inserter begin end istreambuf_iterator next prev size data",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "addressof align allocator make_shared make_unique make_unique_for_overwrite "
              "shared_ptr unique_ptr weak_ptr construct_at destroy_at uninitialized_copy_n",
    "mutex": "lock_guard mutex once_flag scoped_lock try_to_lock unique_lock call_once",
    "new": "align_val_t bad_alloc launder nothrow",
    "numeric": "accumulate gcd iota",
    "optional": "make_optional nullopt nullopt_t optional",
    "ostream": "ostream endl",
    "queue": "queue priority_queue",
    "random": "minstd_rand mt19937 mt19937_64 random_device uniform_int_distribution",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument length_error logic_error out_of_range runtime_error",
    "string": "getline stoul stoull string to_string",
    "string_view": "string_view",
    "system_error": "error_code system_error",
    "thread": "jthread this_thread thread",
    "tuple": "make_tuple tie tuple apply",
    "type_traits": "conditional_t decay_t enable_if_t is_integral_v is_same_v "
                   "is_trivially_copyable_v is_trivially_destructible_v is_unsigned_v "
                   "has_unique_object_representations_v "
                   "is_void_v make_unsigned_t remove_cvref_t remove_reference_t "
                   "underlying_type_t is_constant_evaluated",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "exchange forward in_place move pair swap to_underlying make_pair integer_sequence",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "erase_if vector",
}
# Names that several headers bring by the standard's own words.
ALSO = {"string_view": ["string"], "initializer_list": ["vector", "string", "map", "array", "set"],
        "swap": ["memory", "vector", "string", "map", "array", "optional"], "ios": ["fstream"],
        "pair": ["map"], "move": ["memory"], "hash": ["string", "memory", "optional"],
        "size": ["array", "vector", "string", "span", "map", "deque"],
        "begin": ["array", "vector", "string", "span", "map", "deque"],
        "erase_if": ["set", "map", "string", "deque"],
        "end": ["array", "vector", "string", "span", "map", "deque"],
        "data": ["array", "vector", "string", "span"],
        "exception": ["stdexcept", "new"], "bad_alloc": [], "nano": ["ratio"],
        "istreambuf_iterator": ["fstream"], "transform": [], "get": ["array", "tuple", "variant"],
        "tuple_size_v": ["array", "tuple", "utility"]}
# Without namespace.
INTEGERS = re.compile(r"\bu?int(?:8|16|32|64|ptr|max)_t\b")
SIZES = re.compile(r"(?<!ss)\bsize_t\b|\bptrdiff_t\b")
STD_NAME = re.compile(r"\bstd::(\w+)")

NEEDED = {}
for _header, _names in BROUGHT_BY.items():
    for _name in _names.split():
        NEEDED.setdefault(_name, []).append(_header)
for _name, _headers in ALSO.items():
    NEEDED.setdefault(_name, []).extend(_headers)


@functools.cache
def included_by(path):
    """The headers of the tree that `path` includes itself, and those of others."""
    ours, others = [], set()
    for _, name, _ in cxx_source.includes(cxx_source.read(path)):
        found = [os.path.normpath(os.path.join(base, name))
                 for base in (os.path.dirname(path), *PATHS)]
        found = [p for p in found if os.path.isfile(os.path.join(cxx_source.ROOT, p))]
        if found:
            ours.append(found[0])
        else:
            others.add(name)
    return ours, others


def led_to(path):
    """The headers of the tree that `path` leads to, itself among them, and those of others that
    they include."""
    seen, waiting, others = set(), [path], set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        ours, foreign = included_by(current)
        waiting += ours
        others |= foreign
    return seen, others


def missing_includes(path):
    """(line, words) of each name whose header is not among those that `path` leads to."""
    text, others, found = cxx_source.read(path), led_to(path)[1], []
    for number, line in enumerate(cxx_source.without_comments(text).splitlines(), 1):
        if INTEGERS.search(line) and not others & {"cstdint", "stdint.h"}:
            found.append((number, "needs <cstdint>"))
        if SIZES.search(line) and not others - {"cstdint", "stdint.h", "cassert"}:
            found.append((number, "needs <cstddef>"))
        for name in STD_NAME.findall(line):
            headers = NEEDED.get(name)
            if name in ("size_t", "ptrdiff_t", "nullptr_t"):
                continue
            if headers is None:
                found.append((number, f"std::{name} is not in the list of scripts/lone_headers.py"))
            elif not others & set(headers):
                found.append((number, f"std::{name} needs <{headers[0]}>"))
    return found


def key_of(path, flags):
    """Changes when the header, a header of the tree that it leads to, or the flags change."""
    digest = hashlib.sha256(flags.encode())
    for header in sorted(led_to(path)[0]):
        digest.update(cxx_source.read(header).encode())
    return digest.hexdigest()


def standard_library(folder, packages):
    """Compiles the standard library's headers into `folder`. \\return what to include first."""
    first = os.path.join(folder, "standard.hpp")
    with open(first, "w", encoding="utf-8") as file:
        file.writelines(f"#include <{name}>\n" for name in sorted(BROUGHT_BY))
        file.write("#include <cstddef>\n#include <cstdint>\n")
    subprocess.run(["g++", *FLAGS, *packages, "-x", "c++-header", first, "-o", first + ".gch"],
                   check=True)
    return first


def check(cache_path):
    """Prints what does not compile alone. \\return the exit status."""
    packages = subprocess.run(["pkg-config", "--cflags", *PACKAGES], capture_output=True,
                              text=True, check=True).stdout
    # Whatever is included before the compiled headers makes the compiler read all of them again.
    packages = packages.replace("-include rte_config.h", "").split()
    # A warning in a header of a library is not ours to mend.
    packages = ["-isystem" + flag[2:] if flag.startswith("-I") else flag for flag in packages]
    tree = ["-I" + path for path in PATHS]
    cache = {}
    if cache_path and os.path.exists(cache_path):
        with open(cache_path, encoding="utf-8") as file:
            cache = json.load(file)
    headers = cxx_source.sources(".hpp")
    keys = {path: key_of(path, " ".join([*FLAGS, *tree, *packages, *NEEDED])) for path in headers}
    todo = [path for path in headers if cache.get(path) != keys[path]]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        first = standard_library(folder, packages) if todo else ""

        def compile_one(path):
            # A user has no more than what is installed.
            public = path.startswith(INSTALLED)
            paths = (["-I" + folder for folder in INSTALLED] if public
                     else [*tree, "-I" + os.path.dirname(path)])
            # As its own source: a warning in it is then not one of a system's header.
            command = ["g++", *FLAGS, *packages, "-fsyntax-only", "-include", first, "-I.", *paths,
                       "-x", "c++", "-"]
            said = subprocess.run(command, input=f'#include "{path}"\n', cwd=cxx_source.ROOT,
                                  capture_output=True, text=True)
            faults = [] if said.returncode == 0 else [
                f"{path}:1: does not compile alone", *said.stderr.splitlines()[:6]]
            return path, faults + [f"{path}:{line}: {text}"
                                   for line, text in missing_includes(path)]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, faults in pool.map(compile_one, todo):
                if faults:
                    failed += 1
                    print("\n".join(faults))
                else:
                    cache[path] = keys[path]
    if cache_path:
        with open(cache_path, "w", encoding="utf-8") as file:
            json.dump({path: key for path, key in cache.items() if path in keys}, file)
    print(f"check_style: {len(headers)} headers, {len(todo)} compiled alone, {failed} failed")
    return 1 if failed else 0
