// What is staged: read, sent through a chain of "nodes" of this process, and written as it was.
#include "src/agent/stage_in/transfer.hpp"

#include <utility>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/agent/stage_in/block_queue.hpp"
#include "src/agent/stage_in/cleanup_list.hpp"
#include "src/agent/stage_in/source_reader.hpp"
#include "src/agent/stage_in/tree_writer.hpp"
#include "src/agent/stage_in/unpacker.hpp"
#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/process/command.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::agent;
namespace fs = std::filesystem;

namespace {

plan::StageIn item_of(const fs::path& from, bool unpack = false) {
  return {.name = "item", .from = from.string(), .unpack = unpack};
}

/// What the first node alone does.
Result<void> copy(const plan::StageIn& item, const fs::path& to, const std::function<void()>& meanwhile = {},
                  const Environment& environment = Environment::of_this_process()) {
  // Before the braces: what they have built so far would leak, were TRY to leave them.
  SourceTree source = TRY(survey_source(item));
  Transfer transfer{.items = {item},
                    .sent = {0},
                    .folders = {{0, to}},
                    .sources = {std::move(source)},
                    .environment = environment};
  if (meanwhile) meanwhile();
  StageControl control;
  return run_transfer(transfer, control);
}

void shell(const fs::path& folder, const std::string& line) {
  const auto done = run_command({.argv = {"sh", "-c", line},
                                 .environment = Environment::of_this_process(),
                                 .working_directory = folder.string()});
  REQUIRE(done.has_value());
  REQUIRE_MESSAGE(done->status.success(), done->err);
}

std::string stream_of(const SourceTree& tree) {
  std::string out;
  BlockWriter writer([&](const Block& block) {
    out += *block;
    return true;
  });
  REQUIRE(read_source(tree, 0, writer));
  REQUIRE(end_stream(writer));
  return out;
}

Result<void> write(const std::string& stream, const fs::path& to) {
  std::size_t used = 0;
  const auto next = [&](std::size_t maximum) -> Result<std::string_view> {
    const std::string_view out = std::string_view(stream).substr(used, std::min<std::size_t>(maximum, 1000));
    used += out.size();
    return out;
  };
  return StreamReader(next, {0},
                      [&](int) -> Result<std::unique_ptr<EntrySink>> {
                        return std::unique_ptr<EntrySink>(std::make_unique<TreeWriter>(to));
                      })
      .run();
}

}  // namespace

TEST_CASE("a folder arrives as it was: names, modes, times, links, empty folders and files") {
  const dlrun::test::Folder folder;
  shell(
      folder.path,
      "mkdir -p 'from/a b' from/empty from/locked && printf x > 'from/a b/new\nline' && : > from/none && "
      "head -c 3000000 /dev/urandom > from/large && ln -s large from/link && ln -s /nowhere from/dangling && "
      "printf '#!/bin/sh\n' > from/run && chmod 755 from/run && printf y > from/locked/y && chmod 555 "
      "from/locked && "
      "touch -d '2001-02-03 04:05:06.789' from/run && mkdir to");
  REQUIRE(copy(item_of(folder.path / "from"), folder.path / "to"));
  shell(folder.path,
        "diff -r --no-dereference from to/item && "
        "(cd from && find . -printf '%P|%y|%m|%T@|%l\\n' | sort) > one && "
        "(cd to/item && find . -printf '%P|%y|%m|%T@|%l\\n' | sort) > two && diff one two >&2");
  shell(folder.path, "chmod 755 from/locked to/item/locked");
}

TEST_CASE("a single file arrives, also where a link leads to it") {
  const dlrun::test::Folder folder;
  shell(folder.path, "printf content > file && ln -s file link && mkdir to");
  REQUIRE(copy(item_of(folder.path / "link"), folder.path / "to"));
  CHECK(read_file(folder.path / "to/item").value() == "content");
}

TEST_CASE("what is missing, cannot be copied or changes meanwhile is named") {
  const dlrun::test::Folder folder;
  shell(folder.path, "mkdir from to && mkfifo from/pipe && printf x > file");
  CHECK(copy(item_of(folder.path / "nowhere"), folder.path / "to").error().what ==
        (folder.path / "nowhere").string() + " cannot be staged: No such file or directory");
  CHECK(copy(item_of(folder.path / "from"), folder.path / "to").error().what ==
        (folder.path / "from/pipe").string() + " cannot be staged: it is not a file, folder or link");
  const auto changed = copy(item_of(folder.path / "file"), folder.path / "to",
                            [&] { shell(folder.path, "printf y >> file"); });
  CHECK(changed.error().what ==
        (folder.path / "file").string() + " cannot be staged: it changed while it was read");
  CHECK(copy(item_of("/proc/self/status"), folder.path / "to").error().what ==
        "/proc/self/status cannot be staged: it has more bytes than its size says");
  const auto full = copy(item_of(folder.path / "file"), folder.path / "gone");
  CHECK(full.error().kind == ErrorKind::io);
  CHECK(full.error().what.starts_with("cannot write " + (folder.path / "gone/item").string()));
}

TEST_CASE("a byte that changes on its way is found") {
  const dlrun::test::Folder folder;
  shell(folder.path, "mkdir from && printf '0123456789' > from/file");
  const std::string stream = stream_of(survey_source(item_of(folder.path / "from")).value());
  REQUIRE(write(stream, folder.path / "good"));
  std::string damaged = stream;
  damaged[damaged.find("0123456789") + 4] = 'x';
  CHECK(write(damaged, folder.path / "bad").error().what ==
        "'file' came with another checksum than it was read with");
  CHECK(write(stream.substr(0, stream.size() - 3), folder.path / "short").error().kind == ErrorKind::lost);
}

TEST_CASE("paths that leave their item, and things written through a link, are refused") {
  for (const char* path : {"../x", "a/../../x", "/x", "a//x", "./x", "x/"}) CHECK_FALSE(is_path_below(path));
  CHECK(is_path_below("a b/..c/\n"));
  const dlrun::test::Folder folder;
  using Kind = StageEntry::Kind;
  const auto item = encode({.kind = Kind::item}), root = encode({.kind = Kind::folder, .mode = 0755});
  CHECK(write(item + root + encode({.kind = Kind::file, .path = "../x"}), folder.path / "a").error().kind ==
        ErrorKind::internal);
  CHECK(write(item + root + encode({.kind = Kind::link, .path = "l", .target = "/tmp"}) +
                  encode({.kind = Kind::file, .path = "l/x"}),
              folder.path / "b")
            .error()
            .what == "'l/x' is staged before its folder");
}

TEST_CASE("archives are unpacked on their way, whatever compresses them") {
  const dlrun::test::Folder folder;
  shell(folder.path,
        "mkdir -p from/d && printf x > from/d/x && head -c 200000 /dev/zero > from/zero && ln -s d from/l");
  for (const std::string option : {"", "-z", "-J", "--zstd", "--bzip2"}) {
    CAPTURE(option);
    shell(folder.path, "rm -rf to a.tar && mkdir to && tar -c " + option + " -f a.tar -C from .");
    REQUIRE(copy(item_of(folder.path / "a.tar", true), folder.path / "to"));
    shell(folder.path, "diff -r from to/item");
  }
}

TEST_CASE("a zip archive is unpacked once it is there, and leaves no file beside") {
  const dlrun::test::Folder folder;
  shell(folder.path,
        "mkdir -p from/d to && printf x > from/d/x && head -c 200000 /dev/urandom > from/random && ln -s d "
        "from/l "
        "&& chmod 755 from/random && cd from && zip -q -r --symlinks ../a.zip .");
  REQUIRE(copy(item_of(folder.path / "a.zip", true), folder.path / "to"));
  shell(folder.path,
        "diff -r from to/item && test -L to/item/l && test -x to/item/random && test ! -e to/.archive.zip");
  shell(folder.path, "rm -rf to && mkdir to && head -c 150000 a.zip > cut.zip");
  const auto cut = copy(item_of(folder.path / "cut.zip", true), folder.path / "to");
  REQUIRE_FALSE(cut.has_value());
  CHECK(cut.error().what.starts_with((folder.path / "cut.zip").string() +
                                     " cannot be unpacked: unzip ended with"));
  CHECK_FALSE(cut.error().also.empty());
}

TEST_CASE("an archive with names or links that lead out of its folder is refused by name") {
  const dlrun::test::Folder folder;
  shell(folder.path,
        "printf x > x && mkdir sub && ln -s ../../etc leave && ln -s /etc/passwd absolute && ln -s /bin/sh "
        "program && "
        "tar -cPf up.tar -C sub ../x && tar -cPf root.tar \"$PWD/x\" && tar -cf leave.tar leave && "
        "tar -cf absolute.tar absolute && tar -cf program.tar program && printf 'no archive' > text.tar && "
        "(cd sub && zip -q ../up.zip ../x) && zip -q --symlinks leave.zip leave && zip -q -P word secret.zip "
        "x && mkdir -p chain/a && ln -s .. chain/a/d && ln -s d/../../x chain/a/l && tar -cf chain.tar -C "
        "chain a "
        "&& ln -s a/d/x chain/fine && rm chain/a/l && tar -cf inside.tar -C chain a fine");
  const auto said = [&](const std::string& name) {
    shell(folder.path, "rm -rf to && mkdir to");
    const auto copied = copy(item_of(folder.path / name, true), folder.path / "to");
    return copied ? std::string("fine") : copied.error().what.substr((folder.path / name).string().size());
  };
  CHECK(said("up.tar") == " cannot be unpacked: it has names that lead out of its folder");
  CHECK(said("root.tar") == " cannot be unpacked: it has names that lead out of its folder");
  CHECK(said("leave.tar") == " cannot be unpacked: its link leave -> ../../etc leads out of its folder");
  CHECK(said("absolute.tar") ==
        " cannot be unpacked: its link absolute -> /etc/passwd leads out of its folder");
  CHECK(said("program.tar") == "fine");
  CHECK(said("text.tar").starts_with(" cannot be unpacked: it is not a zip archive, nor a tar archive"));
  CHECK(said("up.zip") == " cannot be unpacked: it has names that lead out of its folder");
  CHECK(said("leave.zip") == " cannot be unpacked: its link leave -> ../../etc leads out of its folder");
  CHECK(said("secret.zip").starts_with(" cannot be unpacked: unzip ended with"));
  CHECK(said("chain.tar") == " cannot be unpacked: its link a/l -> d/../../x leads out of its folder");
  CHECK(said("inside.tar") == "fine");
}

TEST_CASE("a zip archive with backslashes between folders says how to pack it") {
  const dlrun::test::Folder folder;
  shell(folder.path,  // as a program that knows DOS alone writes it
        "mkdir to a && printf x > a/b && zip -q -D a.zip a/b && "
        "LC_ALL=C sed -i 's:a/b:a\\\\b:g; s:PK\\x01\\x02\\(.\\)\\x03:PK\\x01\\x02\\1\\x00:' a.zip");
  const auto copied = copy(item_of(folder.path / "a.zip", true), folder.path / "to");
  REQUIRE_FALSE(copied);
  CHECK(copied.error().text().find("appears to use backslashes as path separators") != std::string::npos);
  CHECK(copied.error().hint == "pack it anew with / between folders, as zip -r does");
}

TEST_CASE("archives are unpacked as they are, whatever options for tar and unzip the user has set") {
  const dlrun::test::Folder folder;
  shell(folder.path,
        "mkdir from && printf x > from/x && tar -cf a.tar -C from . && cd from && zip -q ../a.zip x");
  Environment environment = Environment::of_this_process();
  environment.set("TAR_OPTIONS", "--exclude=x");
  environment.set("UNZIP", "-l");
  environment.set("ZIPINFO", "-l");
  for (const std::string name : {"a.tar", "a.zip"}) {
    CAPTURE(name);
    shell(folder.path, "rm -rf to && mkdir to");
    REQUIRE(copy(item_of(folder.path / name, true), folder.path / "to", {}, environment));
    shell(folder.path, "diff -r from to/item");
  }
}

TEST_CASE("a compression whose program is not on the node is named with what to do") {
  const dlrun::test::Folder folder;
  shell(
      folder.path,
      "mkdir bin to && ln -s \"$(command -v tar)\" bin/tar && printf '\\050\\265\\057\\375' > a.tar");  // zstd
  Environment environment = Environment::of_this_process();
  environment.set("PATH", (folder.path / "bin").string());
  const auto copied = copy(item_of(folder.path / "a.tar", true), folder.path / "to", {}, environment);
  REQUIRE_FALSE(copied);
  CHECK(copied.error().what ==
        (folder.path / "a.tar").string() + " cannot be unpacked: tar ended with exit code 2");
  CHECK(copied.error().hint == "install zstd on the nodes, or compress the archive by another program");
  shell(folder.path, "rm -rf to && mkdir to && printf 'PK\\003\\004' > a.zip");
  const auto unzipped = copy(item_of(folder.path / "a.zip", true), folder.path / "to", {}, environment);
  REQUIRE_FALSE(unzipped);
  CHECK(unzipped.error().what ==
        (folder.path / "a.zip").string() + " cannot be unpacked: program 'unzip' is not found");
  CHECK(unzipped.error().hint == "install unzip on the nodes, or use an archive of another kind");
}

TEST_CASE("the folders of many attempts are listed once, so that the pipe to the reaper never fills") {
  auto pipe = make_pipe();
  REQUIRE(pipe);
  set_nonblocking(pipe->write);
  {
    CleanupList list(std::move(pipe->write));
    for (int attempt = 0; attempt < 5000; ++attempt)
      for (const char* item : {"/tmp/a-folder-of-an-item", "/tmp/another"}) REQUIRE(list.add(item));
  }
  CHECK(read_all(pipe->read.get(), "the list") ==
        std::string("/tmp/a-folder-of-an-item\0/tmp/another\0", 38));
}

TEST_CASE("a transfer that waits for another node ends when it is stopped") {
  StageControl control;
  NextNode next;
  control.stop();
  CHECK_FALSE(next.await(control));
  BlockQueue queue(control);
  CHECK_FALSE(queue.push(std::make_shared<const std::string>("x")));
  CHECK(queue.pop() == nullptr);
  CHECK(control.result().error().kind == ErrorKind::lost);
}
