// Memory that ranks of a node share without a name in a file system.
#include "runtime/comm/transport/common_memory.hpp"

#include <cstring>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::runtime {

TEST_CASE("what one process writes another sees, and it starts as zeros") {
  CommonMemory made = std::move(*CommonMemory::make(100'000));
  auto* bytes = static_cast<unsigned char*>(made.data());
  CHECK(bytes[0] == 0);
  CHECK(bytes[99'999] == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto opened = CommonMemory::open(made.ticket());
    if (!opened) ::_exit(1);
    static_cast<unsigned char*>(opened->data())[99'999] = 42;
    ::_exit(0);
  }
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  CHECK(bytes[99'999] == 42);
}

TEST_CASE("what is not the memory of the ticket is refused") {
  CommonMemory made = std::move(*CommonMemory::make(1000));
  auto ticket = made.ticket();
  ticket.mark[0] ^= 1;
  CHECK(!CommonMemory::open(ticket));
  ticket = made.ticket();
  ticket.size = 2000;
  CHECK(!CommonMemory::open(ticket));
  ticket.descriptor = STDERR_FILENO;
  CHECK(!CommonMemory::open(ticket));
  CHECK(!CommonMemory::open({}));
  ticket = made.ticket();
  made.close_descriptor();
  CHECK(!CommonMemory::open(ticket));
}

}  // namespace dlrun::runtime
