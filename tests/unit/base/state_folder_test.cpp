// Where dlrun remembers things from run to run.
#include "src/base/state_folder.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("what is remembered lies below an absolute path of the user, or nowhere") {
  const auto folder = [](const std::vector<std::string>& entries) {
    return state_folder(Environment::from_entries(entries));
  };
  CHECK(folder({"HOME=/home/ada"}) == "/home/ada/.local/state/dlrun");
  CHECK(folder({"HOME=/home/ada", "XDG_STATE_HOME=/state"}) == "/state/dlrun");
  CHECK(folder({"HOME=/home/ada", "XDG_STATE_HOME=state"}) == "/home/ada/.local/state/dlrun");
  for (const char* home : {"HOME=", "HOME=relative", "HOME=.", "OTHER=/home/ada"})
    CHECK_FALSE(folder({home}).has_value());
}
