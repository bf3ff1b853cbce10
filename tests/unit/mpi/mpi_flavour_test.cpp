// Which MPI a program links, and files that are no programs.
#include "src/process/mpi_flavour.hpp"

#include <filesystem>
#include <fstream>
#include <random>

#include <doctest/doctest.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/process/elf_needed.hpp"

namespace dlrun {

namespace {

struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("dlrun-elf-" + std::to_string(::getpid()));
  explicit File(const std::string& content) { write(content); }
  ~File() { std::filesystem::remove(path); }
  void write(const std::string& content) const { std::ofstream(path, std::ios::binary) << content; }
};

std::string whole(const std::filesystem::path& path) {
  auto content = read_file(path);
  REQUIRE(content);
  return *content;
}

}  // namespace

TEST_CASE("a script is unknown, whatever it runs") {
  const File script("#!/usr/bin/env python3\nimport mpi4py\n");
  CHECK(mpi_flavour(script.path, {}) == MpiFlavour::unknown);
}

TEST_CASE("a program without MPI is unknown") {
  CHECK(mpi_flavour("/proc/self/exe", {}) == MpiFlavour::unknown);
}

TEST_CASE("a program that links Open MPI") {
  CHECK(mpi_flavour(OPENMPI_PROGRAM, {}) == MpiFlavour::openmpi);
}

TEST_CASE("a program that links MPICH") {
  CHECK(mpi_flavour(MPICH_PROGRAM, {}) == MpiFlavour::mpich);
}

TEST_CASE("an MPI that only a library of the program links is found through the library's folder") {
  CHECK(mpi_flavour(MPICH_USER, {}) == MpiFlavour::mpich);
}

TEST_CASE("what is no ELF file is an error with its name") {
  const File text("hello");
  const auto result = mpi_flavour(text.path, {});
  REQUIRE(!result);
  CHECK(result.error().text() == text.path.string() + ": the ELF file is cut short");
  CHECK(!mpi_flavour("/nowhere", {}));
  CHECK(!mpi_flavour("/tmp", {}));
}

TEST_CASE("a damaged ELF file is read or refused, never more") {
  const std::string original = whole("/proc/self/exe").substr(0, 8192);
  std::mt19937 random(1);
  const File file("");
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = original.substr(0, i % 3 == 0 ? random() % original.size() : original.size());
    const std::size_t reach = i % 2 == 0 ? 1024 : damaged.size();  // the headers are hit more often
    for (int hits = 0; hits < 8 && !damaged.empty(); ++hits)
      damaged[random() % std::min(reach, damaged.size())] = static_cast<char>(random());
    file.write(damaged);
    const auto needed = read_elf_needed(file.path);
    if (!needed) CHECK(needed.error().kind == ErrorKind::input);
  }
}

}  // namespace dlrun
