#include "src/base/file.hpp"

#include <thread>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/named_file.hpp"
#include "src/base/regular_file.hpp"

using namespace dlrun;
namespace fs = std::filesystem;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("dlrun-file-test-{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};
}  // namespace

TEST_CASE("a file is replaced whole and leaves nothing beside it") {
  const Folder folder;
  const fs::path file = folder.path / "record.json";
  REQUIRE(replace_file(file, "one", Durability::none).has_value());
  REQUIRE(replace_file(file, "two", Durability::synced).has_value());
  CHECK(*read_file(file) == "two");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("files that cannot be read or written are errors with path and reason") {
  const Folder folder;
  CHECK(read_file(folder.path / "absent").error().what.ends_with("absent: No such file or directory"));
  CHECK(read_file(folder.path).error().what.ends_with("is a directory"));
  const auto full = replace_file("/proc/no/such", "x", Durability::none);
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().kind == ErrorKind::io);
}

TEST_CASE("what is no regular file is refused and never waited for; a shell's pipe is read to its end") {
  const Folder folder;
  const fs::path fifo = folder.path / "fifo", text = folder.path / "job.yaml";
  REQUIRE(replace_file(text, "name: a\n", Durability::none).has_value());
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const fs::path& path : {fifo, fs::path("/dev/zero"), fs::path("/dev/null")}) {
    CHECK(open_regular_file(path).error().text() == path.string() + ": is not a regular file");
    CHECK(read_regular_file(path).error().kind == ErrorKind::input);
    CHECK(read_file_or_pipe(path).error().what == "cannot read " + path.string() + ": is not a regular file");
  }
  CHECK(open_regular_file(folder.path / "absent").error().what ==
        "cannot be read: No such file or directory");
  CHECK(open_regular_file(text)->size == 8);
  CHECK(*read_regular_file(text) == "name: a\n");
  CHECK(*read_file_or_pipe(text) == "name: a\n");
  CHECK(read_file_or_pipe(folder.path).error().what.ends_with("is a directory"));
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) REQUIRE(::write(pipe[1], "name: a\n", 8) == 8);
    ::close(pipe[1]);
  });
  const auto read = read_file_or_pipe(fmt::format("/dev/fd/{}", pipe[0]));
  writer.join();
  ::close(pipe[0]);
  CHECK(read->size() == 160'000);
}

TEST_CASE(
    "a file that a person named: the nearest neighbour is named, and a device does not fill the memory") {
  const Folder folder;
  REQUIRE(replace_file(folder.path / "fashion-mnist.yaml", "x", Durability::none).has_value());
  fs::create_directories(folder.path / "fashion-mnst");
  CHECK(*read_named_file(folder.path / "fashion-mnist.yaml") == "x");
  const auto missed = read_named_file(folder.path / "fashion-mnst.yaml");
  CHECK(missed.error().what.ends_with("fashion-mnst.yaml: No such file or directory"));
  CHECK(missed.error().hint ==
        fmt::format("did you mean '{}'?", (folder.path / "fashion-mnist.yaml").string()));
  CHECK(read_named_file(folder.path / "zebra.yaml").error().hint.empty());
  CHECK(read_named_file("/dev/zero").error().what == "cannot read /dev/zero: is not a regular file");
  CHECK(read_file(folder.path / "fashion-mnist.yaml", 1).has_value());
  CHECK_FALSE(read_file("/proc/self/status", 10).has_value());
}

TEST_CASE("the mark of UTF-8 is no text, and UTF-16 is named") {
  CHECK(*utf8_text("\xef\xbb\xbfn1\n", "hosts") == "n1\n");
  CHECK(*utf8_text("n1\n", "hosts") == "n1\n");
  CHECK(*utf8_text("", "hosts") == "");
  for (const std::string_view text : {std::string_view("\xff\xfen\0001\0", 6),
                                      std::string_view("\xfe\xff\0n", 4), std::string_view("n\0001\0", 4)})
    CHECK(utf8_text(text, "hosts").error().text() ==
          "hosts: the file is UTF-16, not UTF-8\n  hint: iconv -f UTF-16 -t UTF-8 FILE");
}
