#include "rnic-run/program_file.hpp"

#include <elf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace rnic::run {

namespace {

namespace fs = std::filesystem;

constexpr char kUsualPath[] = "/bin:/usr/bin";  // where PATH is not set
constexpr size_t kLongestFirstLine = 256;       // of a script, for the kernel

/// The file that execvp() takes; empty: there is none.
fs::path found(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : kUsualPath);
  for (std::string each; std::getline(folders, each, ':');) {
    std::error_code error;
    const fs::path file = fs::path(each.empty() ? "." : each) / program;
    if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// \return the interpreter that a script names; empty: it is no script
std::string interpreter_of(const fs::path& file) {
  std::string line(kLongestFirstLine, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(in.gcount()));
  if (line.compare(0, 2, "#!") != 0) return {};
  std::string word;
  std::istringstream(line.substr(2, line.find('\n') - 2)) >> word;
  return word;
}

template <typename T>
bool read_at(std::ifstream& in, uint64_t at, T& out) {
  in.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&out), sizeof(out)));
}

/// \return whether it is a program of this machine's that asks for no loader
bool is_static(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(in, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;  // the loader says so itself
  }
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!read_at(in, header.e_phoff + i * sizeof(part), part)) return false;
    if (part.p_type == PT_INTERP) return false;
  }
  // The loader has none either, and can be started as a program.
  return file.filename().string().compare(0, 3, "ld-") != 0;
}

/// \return whether the program gets rights that its user does not have
bool gets_rights(const fs::path& file) {
  struct stat facts {};
  struct statvfs system {};
  if (stat(file.c_str(), &facts) != 0) return false;
  if (statvfs(file.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0) return false;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
  const bool of_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != getuid();
  const bool of_group = (facts.st_mode & S_ISGID) != 0 && (facts.st_mode & S_IXGRP) != 0 &&
                        facts.st_gid != getgid();
  const bool of_file =
      getuid() != 0 && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
  return of_user || of_group || of_file;
}

}  // namespace

std::string why_nothing_is_preloaded(const std::string& program) {
  fs::path file = found(program);
  if (const std::string interpreter = interpreter_of(file); !interpreter.empty()) {
    file = interpreter;
  }
  const char* const why = gets_rights(file)   ? "it gets rights that its user does not have"
                          : is_static(file) ? "it is linked statically"
                                            : nullptr;
  if (why == nullptr) return {};
  return file.string() + " runs without the device, as nothing can be preloaded into it: " + why;
}

}  // namespace rnic::run
