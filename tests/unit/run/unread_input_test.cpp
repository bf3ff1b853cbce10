#include "src/run/unread_input.hpp"

#include <cstdio>

#include <doctest/doctest.h>
#include <fcntl.h>

#include "src/base/unique_fd.hpp"

using namespace dlrun;
using dlrun::job::unread_input;

TEST_CASE("a pipe or a file with something in it is told of, and nothing is taken out of it") {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  const UniqueFd read_end(fds[0]), write_end(fds[1]);
  CHECK(!unread_input(read_end.get()));
  REQUIRE(::write(write_end.get(), "a\n", 2) == 2);
  CHECK(unread_input(read_end.get()));
  char bytes[4] = {};
  CHECK(::read(read_end.get(), bytes, sizeof bytes) == 2);

  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK(!unread_input(::fileno(file)));
  REQUIRE(::write(::fileno(file), "abc", 3) == 3);
  CHECK(!unread_input(::fileno(file)));  // a loop that has read it to its end
  REQUIRE(::lseek(::fileno(file), 0, SEEK_SET) == 0);
  CHECK(unread_input(::fileno(file)));
  std::fclose(file);

  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(!unread_input(null.get()));
}
