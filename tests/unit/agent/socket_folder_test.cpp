#include "src/agent/socket_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/lease_folder.hpp"

using namespace dlrun;
namespace fs = std::filesystem;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("scratch-test-{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  auto count() const { return std::distance(fs::directory_iterator(path), fs::directory_iterator{}); }
};
}  // namespace

TEST_CASE("a scratch folder is private and goes with its owner") {
  const Folder folder;
  {
    const auto scratch = agent::Scratch::make(folder.path);
    REQUIRE(scratch.has_value());
    struct stat status {};
    REQUIRE(::stat(scratch->path().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
  }
  CHECK(folder.count() == 0);
}

TEST_CASE("an abandoned folder is removed by the next owner, a living one and a foreign one are not") {
  const Folder folder;
  const fs::path abandoned = folder.path / fmt::format("dlrun-{}-dead00", ::getuid());
  fs::create_directories(abandoned / "inner");
  ::close(::creat((abandoned / "lock").c_str(), 0600));
  fs::create_directories(folder.path / "somebody-elses");
  const auto living = agent::Scratch::make(folder.path);
  CHECK_FALSE(fs::exists(abandoned));
  const auto second = agent::Scratch::make(folder.path);
  CHECK(fs::exists(living->path()));
  CHECK(folder.count() == 3);
}

TEST_CASE(
    "a folder is judged by the process in its lock, where the file system has locks and where it has none") {
  const Folder folder;
  const auto with_owner = [&](const std::string& name, const ProcessIdentity& process) {
    const fs::path path = folder.path / fmt::format("dlrun-{}-{}", ::getuid(), name);
    fs::create_directories(path);
    REQUIRE(replace_file(path / "lock", lease_text({.process = process, .job = {}, .run = {}}, 0),
                         Durability::none));
    return path;
  };
  ProcessIdentity ended = this_process(), far = this_process();
  ended.started += 1;
  far.namespace_ = "pid:[1]";  // a container on a shared disk
  const fs::path living = with_owner("alive0", this_process()), left = with_owner("dead00", ended),
                 elsewhere = with_owner("far000", far);
  const auto scratch = agent::Scratch::make(folder.path);
  CHECK(fs::exists(living));
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(elsewhere));
}

TEST_CASE("a folder that cannot be written is an error with a next step") {
  CHECK(agent::Scratch::make("/proc").error().hint == "set TMPDIR to a folder that can be written");
}
