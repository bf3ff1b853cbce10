#include "src/process/child.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>
#include <unistd.h>

#include "src/process/command.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;

namespace {
CommandOutput run(const Argv& argv, const std::string& folder = {}) {
  auto output =
      run_command({.argv = argv, .environment = Environment::of_this_process(), .working_directory = folder});
  REQUIRE_MESSAGE(output.has_value(), (output ? "" : output.error().text()));
  return std::move(*output);
}
}  // namespace

TEST_CASE("a command's output and end are captured, both pipes full at once") {
  const auto output = run({"bash", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3"});
  CHECK(output.out.size() == 300000);
  CHECK(output.err.size() == 300000);
  CHECK(output.status.text() == "exit code 3");
  CHECK(run({"bash", "-c", "kill -9 $$"}).status.text() == "killed by SIGKILL (9)");
  CHECK(run({"bash", "-c", "kill -9 $$"}).status.code() == 137);
}

TEST_CASE("arguments and environment arrive byte for byte") {
  auto env = Environment::of_this_process();
  env.set("ODD", "a b\n$c'\"");
  const auto output = run_command(
      {.argv = {"bash", "-c", "printf '%s|' \"$@\" \"$ODD\"", "x", "it's", "", "-n"}, .environment = env});
  CHECK(output->out == "it's||-n|a b\n$c'\"|");
}

TEST_CASE("a child is a session leader, has default signals, and its own folder") {
  const auto output = run(
      {"bash", "-c", "ps -o sid= -p $$ | tr -d ' '; echo $$; pwd; grep SigBlk /proc/self/status"}, "/usr");
  const std::string text = output.out;
  const std::string sid = text.substr(0, text.find('\n'));
  CHECK(text == sid + "\n" + sid + "\n/usr\nSigBlk:\t0000000000000000\n");
}

TEST_CASE("a child has no descriptor that it was not given, unless these are left as they are marked") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // not close-on-exec, as a library's or a launcher's may be
  for (const auto& [others, code] :
       {std::pair(OtherDescriptors::closed, 1), std::pair(OtherDescriptors::as_marked, 0)}) {
    const std::string is_open = "[ -e /proc/self/fd/" + std::to_string(ends[1]) + " ]";
    const auto pid = start_child({.argv = {"bash", "-c", is_open},
                                  .environment = Environment::of_this_process(),
                                  .working_directory = {},
                                  .inherited_fds = {},
                                  .other_descriptors = others});
    REQUIRE(pid.has_value());
    std::optional<ExitStatus> status;
    while (!(status = reap(*pid))) ::usleep(1000);
    CHECK(status->code() == code);
  }
  ::close(ends[0]), ::close(ends[1]);
}

TEST_CASE("user signals end a program, or are ignored where a scheduler warns with them") {
  for (const auto& [signals, number] :
       {std::pair(UserSignals::end_it, SIGUSR2), std::pair(UserSignals::ignored, 0)}) {
    const auto pid = start_child({.argv = {"bash", "-c", "kill -USR1 $$; kill -USR2 $$"},
                                  .environment = Environment::of_this_process(),
                                  .working_directory = {},
                                  .inherited_fds = {},
                                  .user_signals = signals});
    REQUIRE(pid.has_value());
    std::optional<ExitStatus> status;
    while (!(status = reap(*pid))) ::usleep(1000);
    CHECK((status->signal != 0) == (number != 0));
  }
}

TEST_CASE("a program that cannot run is an error that names it") {
  const auto env = Environment::of_this_process();
  const auto start = [&](const std::string& name, const std::string& folder = "") {
    return run_command({.argv = {name}, .environment = env, .working_directory = folder}).error().text();
  };
  CHECK(start("no-such-program").starts_with("program 'no-such-program' is not found\n  hint: PATH is "));
  CHECK(start("./no-such") == "./no-such does not exist\n  hint: looked for ./no-such");
  CHECK(start("/etc/passwd") == "/etc/passwd is not executable\n  hint: chmod +x /etc/passwd");
  CHECK(start("/usr") == "/usr is a folder, not a program\n  hint: name a program in it");
  CHECK(start("true", "/no/such/folder") ==
        "cannot start /usr/bin/true: /no/such/folder: No such file or directory");
  const test::Folder folder;
  const auto start_file = [&](const std::string& text) {
    const std::string program = folder.write("program", text);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const std::string told = start(program);
    return told.substr(std::min(told.find("hint: "), told.size()));
  };
  CHECK(start_file("#!/no/such -u\nx\n") ==
        "hint: the interpreter of its first line is not there: #!/no/such -u");
  CHECK(start_file("#!/bin/bash\r\ntrue\r\n") ==
        "hint: its lines end as on Windows: sed -i 's/\\r$//' " + (folder.path / "program").string());
  CHECK(start_file("true\n").starts_with("hint: a script needs a first line such as #!/bin/bash"));
}

TEST_CASE("a command that outlives its limit is ended with its whole session") {
  const auto output = run_command({.argv = {"bash", "-c", "sleep 1000 & sleep 1000"},
                                   .environment = Environment::of_this_process(),
                                   .limit = Seconds(0.2)});
  REQUIRE_FALSE(output.has_value());
  CHECK(output.error().what == "bash -c 'sleep 1000 & sleep 1000' did not end within 200ms");
}
