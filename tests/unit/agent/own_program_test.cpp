#include "src/agent/own_program.hpp"

#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace dlrun;
using agent::own_program;
namespace fs = std::filesystem;

namespace {
// An installation at `there` and a copy of it at `here`.
struct Places {
  fs::path root = fs::temp_directory_path() / fmt::format("own-program-test-{}", ::getpid());
  fs::path there = root / "there" / "bin", here = root / "here" / "bin";
  Places() {
    for (const fs::path& bin : {there, here}) {
      fs::create_directories(bin);
      for (const char* name : {"dlrun-train", "python3"}) std::ofstream(bin / name) << "#!";
    }
  }
  ~Places() { fs::remove_all(root); }
  Installation own() const { return {.bin = here, .data = {}, .plugins = {}}; }
};
}  // namespace

TEST_CASE("a program of dlrun's own that is not where the plan says is the copy beside the agent") {
  const Places places;
  const std::string planned = (places.there / "dlrun-train").string();
  CHECK(own_program({planned, "--config", "x"}, places.own()).empty());
  fs::remove(planned);
  CHECK(own_program({planned, "--config", "x"}, places.own()) == (places.here / "dlrun-train").string());
}

TEST_CASE("other programs stay what the plan says") {
  const Places places;
  fs::remove(places.there / "python3");
  CHECK(own_program({(places.there / "python3").string()}, places.own()).empty());
  CHECK(own_program({"dlrun-train"}, places.own()).empty());
  CHECK(own_program({}, places.own()).empty());
}
