#include "src/agent/function_on_stack.hpp"

#include <csignal>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/elf_symbol.hpp"
#include "src/process/process_state.hpp"

using namespace dlrun;

extern "C" {
// Not inlined, and not left by a jump: its address must be on the stack while it waits.
__attribute__((noinline, used)) int function_to_be_inside_of(int fd) {
  char byte = 0;
  const ssize_t got = ::read(fd, &byte, 1);
  return static_cast<int>(got) + 1;
}
}

namespace {

// A child that goes into the function, and stays there until the pipe is closed.
struct Child {
  int fds[2] = {-1, -1};
  pid_t pid = -1;
  explicit Child(bool inside) {
    REQUIRE(::pipe(fds) == 0);
    pid = ::fork();
    if (pid != 0) return;
    ::close(fds[1]);
    if (inside) ::_exit(function_to_be_inside_of(fds[0]));
    ::pause();
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ::close(fds[0]);
    ::close(fds[1]);
  }
  bool is_inside() const { return is_inside_function(pid, "no-such-library", "function_to_be_inside_of"); }
};

}  // namespace

TEST_CASE("a process inside a function is told from one that is not") {
  const Child inside(true), outside(false);
  while (!inside.is_inside()) ::usleep(1000);
  CHECK_FALSE(outside.is_inside());
  CHECK_FALSE(is_inside_function(inside.pid, "no-such-library", "no_such_function"));
}

TEST_CASE("a process that is gone is inside nothing") {
  pid_t gone = -1;
  {
    const Child child(true);
    gone = child.pid;
  }
  CHECK_FALSE(is_inside_function(gone, "libc", "read"));
  CHECK(states_of_tree(gone).empty());
}

TEST_CASE("a symbol of a library is found, and none of a file that is no library") {
  const auto here = find_elf_symbol("/proc/self/exe", "function_to_be_inside_of");
  REQUIRE(here);
  REQUIRE(here->has_value());
  CHECK((*here)->size > 0);
  CHECK_FALSE(find_elf_symbol("/proc/self/exe", "no_such_function")->has_value());
  CHECK_FALSE(find_elf_symbol("/proc/self/status", "read").has_value());
}

TEST_CASE("a stopped process is seen as stopped") {
  const Child child(false);
  ::kill(child.pid, SIGSTOP);
  while (states_of_tree(child.pid).front().state != 'T') ::usleep(1000);
  CHECK(states_of_tree(child.pid).front().pid == child.pid);
}
