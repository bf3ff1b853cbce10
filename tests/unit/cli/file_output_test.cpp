#include "src/cli/file_output.hpp"

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/base/unique_fd.hpp"

using namespace dlrun;
using cli::FileOutput;

namespace {

// A file system that takes nothing until it is thawed.
class Stalled {
 public:
  FileOutput::Sink sink() {
    return [this](int fd, std::string_view text) -> Result<void> {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return thawed_; });
      if (text == "no room") return fail(ErrorKind::io, "No space left on device");
      got_ += std::to_string(fd) + std::string(text);
      return {};
    };
  }
  void thaw() {
    const std::lock_guard lock(mutex_);
    thawed_ = true;
    changed_.notify_all();
  }
  std::string got() {
    const std::lock_guard lock(mutex_);
    return got_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool thawed_ = false;
  std::string got_;
};

bool never_full() {
  FAIL("it is not full");
  return false;
}

}  // namespace

TEST_CASE("a file that stalls holds up nobody, and gets what was said in its order") {
  Stalled file;
  {
    FileOutput output(file.sink());
    output.put(1, "a", never_full);
    output.put(2, "b", never_full);
    output.put(1, "c", never_full);
    CHECK(file.got().empty());
    file.thaw();
  }
  CHECK(file.got() == "1a2b1c");
}

TEST_CASE("a full queue makes its caller wait for room, who does its work meanwhile") {
  Stalled file;
  FileOutput output(file.sink());
  const std::string large(FileOutput::kMaxQueued, 'x');
  output.put(1, large, never_full);
  int waits = 0;
  output.put(1, "behind", [&] {
    if (++waits == 2) file.thaw();
    return true;
  });
  CHECK(waits >= 2);
  output.finish();
  CHECK(file.got() == "1" + large + "1behind");
}

TEST_CASE("who may not wait is not kept waiting, and loses nothing") {
  Stalled file;
  FileOutput output(file.sink());
  const std::string large(FileOutput::kMaxQueued, 'x');
  output.put(1, large, never_full);
  output.put(1, "behind", [] { return false; });
  CHECK(file.got().empty());
  file.thaw();
  output.finish();
  CHECK(file.got() == "1" + large + "1behind");
}

TEST_CASE("what a full disk does not take is said, and later text is tried again") {
  Stalled file;
  FileOutput output(file.sink());
  file.thaw();
  output.put(1, "before", never_full);
  output.put(1, "no room", never_full);
  output.put(1, "after", never_full);
  output.finish();
  CHECK(output.lost() == "No space left on device");
  CHECK(file.got() == "1before1after");
}

TEST_CASE("only regular files are taken, and two descriptors of one file are known as that") {
  char path[] = "/tmp/dlrun-file-output-XXXXXX";
  const UniqueFd one(::mkstemp(path)), other(::open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
  const UniqueFd device(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ::unlink(path);
  CHECK(FileOutput::takes(one.get()));
  CHECK(!FileOutput::takes(device.get()));
  CHECK(FileOutput::are_one_file(one.get(), other.get()));
  CHECK(!FileOutput::are_one_file(one.get(), device.get()));
  const auto refused = FileOutput::write_to_file(device.get(), "text");
  REQUIRE(!refused);
  CHECK(refused.error().what == "No space left on device");
}
