// What is found out of a node and of a program.
#include <doctest/doctest.h>
#include <unistd.h>

#include "src/agent/provenance/program_seen.hpp"
#include "src/process/elf_build_id.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::agent;

namespace {

ProgramSeen program(std::vector<std::string> entries, std::vector<std::string> libraries = {}) {
  ProgramSeen out;
  out.environment = Environment::from_entries(entries);
  out.libraries = std::move(libraries);
  return out;
}

}  // namespace

TEST_CASE("libraries are what is mapped to be run, each once") {
  const char* maps =
      "7f00-7f10 r--p 00000000 fe:01 1 /usr/lib/libz.so.1.2.13\n"
      "7f10-7f20 r-xp 00001000 fe:01 1 /usr/lib/libz.so.1.2.13\n"
      "7f20-7f30 r-xp 00000000 fe:01 2 /usr/lib/python3/x.cpython-311-x86_64-linux-gnu.so\n"
      "7f30-7f40 r-xp 00000000 fe:01 3 /usr/bin/python3.11\n"
      "7f40-7f50 r-xp 00000000 fe:01 4 /tmp/libgone.so (deleted)\n"
      "7f50-7f60 r-xp 00000000 00:00 0 [vdso]\n"
      "7f60-7f70 r--p 00000000 fe:01 5 /usr/lib/data.so\n";
  CHECK(libraries_in(maps) == std::vector<std::string>{"/usr/lib/libz.so.1.2.13",
                                                       "/usr/lib/python3/x.cpython-311-x86_64-linux-gnu.so"});
}

TEST_CASE("this program is seen as its loader has made it") {
  const auto seen = see_program(::getpid());
  REQUIRE(seen);
  CHECK(seen->executable == std::filesystem::read_symlink("/proc/self/exe"));
  const Json libraries = find_libraries(*seen);
  bool libc = false;
  for (const auto& [file, build] : libraries.items()) {
    CHECK(build.is_string());
    libc = libc || file.find("/libc.so.6") != std::string::npos || file.find("/libc-2") != std::string::npos;
  }
  CHECK(libc);
}

TEST_CASE("variables that tell, and no secret") {
  const Json found = find_variables(program({"NCCL_DEBUG=INFO", "HF_TOKEN=abc", "MY_PASSWORD=x", "OTHER=1",
                                             "LD_LIBRARY_PATH=/opt/lib", "OMP_NUM_THREADS=4"}));
  CHECK(found == Json{{"LD_LIBRARY_PATH", "/opt/lib"}, {"NCCL_DEBUG", "INFO"}, {"OMP_NUM_THREADS", "4"}});
}

TEST_CASE("modules in the order in which they were loaded") {
  CHECK(find_modules(program({"LOADEDMODULES=gcc/12:cuda/11.8"})) == Json{"gcc/12", "cuda/11.8"});
  CHECK(find_modules(program({})) == Json::array());
}

TEST_CASE("versions are what a library says of itself, else those of its file's name") {
  const dlrun::test::Folder folder;
  const auto mpi =
      folder.write("libmpi.so.40.30.4", std::string("\0Open MPI v%s\0Open MPI v4.1.4, package\0", 39));
  const auto nccl = folder.write("libnccl.so.2.18.3", "");
  CHECK(find_versions(program({}, {mpi.string(), nccl.string(), "/usr/lib/libother.so.1"})) ==
        Json{{"Open MPI", "4.1.4"}, {"NCCL", "2.18.3"}});
}

TEST_CASE("a build id is read from the file's notes, and a text has none") {
  CHECK(build_id("/proc/self/exe").has_value());
  const dlrun::test::Folder folder;
  CHECK_FALSE(build_id(folder.write("text", "no program")));
}

TEST_CASE("every node tells its processors and its system") {
  CHECK(find_cpus()["processors"] >= 1);
  CHECK(find_system()["kernel"].is_string());
}
