#include <doctest/doctest.h>

#include "src/launch/ssh/command.hpp"

using namespace dlrun;
using namespace dlrun::launch;

TEST_CASE("the remote command is one word to the login shell, whichever that is") {
  CHECK(remote_agent_command("/opt/dlrun/bin/dlrun-agent", "0123") ==
        "exec /bin/sh -c 'printf %s%s dlrun-stream- 0123; exec /opt/dlrun/bin/dlrun-agent'");
}

TEST_CASE("a copy is asked for behind the word, in a command that every login shell leaves alone") {
  const std::string command = remote_agent_or_copy("/opt/bin/dlrun-agent", "0123");
  CHECK(
      command.starts_with("exec /bin/sh -c 'p=/opt/bin/dlrun-agent; if [ -x \"$p\" ]; then "
                          "printf %s%s%s dlrun-stream- 0123 h; exec \"$p\"; fi; "
                          "printf %s%s%s dlrun-stream- 0123 c; "));
  const std::string script =
      command.substr(command.find('\'') + 1, command.rfind('\'') - command.find('\'') - 1);
  CHECK(script.find_first_of("'\n!") == std::string::npos);
}

TEST_CASE("a path with any bytes is written in octal, which all shells leave alone") {
  const auto octal = [](const std::string& digits) { return "\"$(printf \"" + digits + "\")\""; };
  CHECK(script_word("/a b") == octal("\\057\\141\\040\\142"));
  CHECK(script_word("it's") == octal("\\151\\164\\047\\163"));
  CHECK(script_word("") == octal(""));
  CHECK(script_word("\xc3\xa4") == octal("\\303\\244"));
  CHECK(script_word("~") == octal("\\176"));  // a tilde means something
  CHECK(script_word("/opt/x-1.2_3+") == "/opt/x-1.2_3+");
}

TEST_CASE("the stream begins behind the word, whatever pieces it comes in") {
  const std::string noise = "Welcome!\n\x1b[31mred\x1b[0m\n", all = noise + "dlrun-stream-77frames";
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    StreamStart start("77");
    std::string rest;
    bool found = false;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      const std::string bytes = all.substr(at, piece);
      if (found) {
        rest += bytes;
        continue;
      }
      if (auto got = start.add(bytes).value()) {
        found = true;
        rest = *got;
      }
    }
    CHECK(found);
    CHECK(rest == "frames");
    CHECK(start.noise() == std::vector<std::string>{"Welcome!", "red"});
  }
}

TEST_CASE("an echo of our own command line is no beginning") {
  StreamStart start("77");
  CHECK_FALSE(start.add(remote_agent_command("/bin/dlrun-agent", "77")).value());
  CHECK(start.add("dlrun-stream-77").value() == "");
}

TEST_CASE("noise without end is an error, and not kept") {
  StreamStart start("77");
  const std::string piece(StreamStart::kMaxNoise / 2, 'x');
  CHECK(start.add(piece));
  CHECK(start.add(piece));
  const auto more = start.add("x");
  REQUIRE_FALSE(more);
  CHECK(more.error().what ==
        "its login shell printed more than 1048576 bytes and did not reach the dlrun command");
}

TEST_CASE("shown lines are few, short and clean") {
  CHECK(shown_lines("a\r\n\n  b  \n\x07").size() == 2);
  CHECK(shown_lines("1\n2\n3\n4\n5\n6\n7\n8\n").back() == "...");
  CHECK(shown_lines(std::string(100000, 'x')).front().size() == 200);
  CHECK(shown_lines("\x1b[1;31mred\x1b[0m \x1b").front() == "red");
  CHECK(shown_lines("").empty());
}

TEST_CASE("every start has a word of its own") {
  CHECK(new_stream_word() != new_stream_word());
  CHECK(new_stream_word().size() == 16);
}
