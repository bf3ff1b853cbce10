#include "src/base/pipe.hpp"

#include <cerrno>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/base/host_name.hpp"

using namespace dlrun;

TEST_CASE("a pipe carries bytes, and no child inherits its ends") {
  Pipe pipe = make_pipe().value();
  CHECK(::write(pipe.write.get(), "x", 1) == 1);
  char got = 0;
  CHECK(::read(pipe.read.get(), &got, 1) == 1);
  CHECK(got == 'x');
  for (const int fd : {pipe.read.get(), pipe.write.get()})
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC);
}

TEST_CASE("an end that was made non-blocking does not wait, the other one stays as it was") {
  const Pipe pipe = make_pipe().value();
  set_nonblocking(pipe.read);
  char got = 0;
  CHECK(::read(pipe.read.get(), &got, 1) == -1);
  CHECK(errno == EAGAIN);
  CHECK((::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("the host name is the kernel's") {
  const UniqueFd file(::open("/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC));
  char text[256] = {};
  REQUIRE(::read(file.get(), text, sizeof text - 1) > 0);
  CHECK(host_name() + "\n" == text);
}
