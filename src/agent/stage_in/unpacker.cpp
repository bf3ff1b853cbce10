#include "src/agent/stage_in/unpacker.hpp"

#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/agent/stage_in/source_tree.hpp"
#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBeginning = 512;
constexpr int kLookMilliseconds = 100;

bool is_program(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
}

bool leaves(const fs::path& folder, const fs::path& target) {
  if (target.is_absolute()) return true;
  const fs::path place = (folder / target).lexically_normal();
  return !place.empty() && *place.begin() == "..";
}

/// Which program tar could not start, from "tar (child): zstd: Cannot exec: No such file or directory";
/// empty for none.
std::string program_not_found(const std::string& said) {
  const std::size_t end = said.find(": Cannot exec: ");
  if (end == std::string::npos) return {};
  const std::size_t start = said.rfind(' ', end);
  return start == std::string::npos ? std::string() : said.substr(start + 1, end - start - 1);
}

}  // namespace

std::string link_that_leaves(const fs::path& root) {
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(root, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored)) continue;
    const fs::path target = fs::read_symlink(entry->path(), ignored);
    const fs::path below = entry->path().lexically_relative(root);
    if (leaves(below.parent_path(), target) && !is_program(entry->path()))
      return fmt::format("{} -> {}", below.string(), target.string());
  }
  return {};
}

Unpacker::Unpacker(std::string from, fs::path root, fs::path log, Environment environment,
                   const StageControl& control)
    : from_(std::move(from)),
      root_(std::move(root)),
      log_(std::move(log)),
      environment_(std::move(environment)),
      control_(control) {
  environment_.set("LC_ALL", "C");
}

Unpacker::~Unpacker() {
  end_tar();
}

void Unpacker::end_tar() {
  input_.reset();
  if (tar_ <= 0) return;
  ::kill(-tar_, SIGKILL);
  constexpr int kMaxLooks = 1000;
  for (int i = 0; i < kMaxLooks && !reap(tar_); ++i) std::this_thread::sleep_for(Milliseconds(1));
  tar_ = 0;
}

tl::unexpected<Error> Unpacker::refuse(const std::string& why) const {
  Error out{.kind = ErrorKind::unavailable,
            .what = fmt::format("{} cannot be unpacked: {}", from_, why),
            .where = {},
            .hint = {},
            .also = {}};
  const std::string said = read_file(log_).value_or(std::string());
  constexpr std::size_t kMaxLines = 6;
  for (const std::string& line : split(trim(said), '\n'))
    if (!line.empty() && out.also.size() < kMaxLines) out.also.push_back(line);
  const bool full =
      said.find("No space left") != std::string::npos || said.find("quota") != std::string::npos;
  if (full) out.kind = ErrorKind::io;
  if (const std::string program = program_not_found(said); !program.empty())
    out.hint = fmt::format("install {} on the nodes, or compress the archive by another program", program);
  return fail(std::move(out));
}

Result<void> Unpacker::entry(const StageEntry& entry) {
  if (!entry.path.empty() || entry.kind != StageEntry::Kind::file)
    return fail(ErrorKind::internal, "{} is to be unpacked, and came as a folder", from_);
  if (::mkdir(root_.c_str(), 0700) != 0)
    return fail(ErrorKind::io, "cannot create {}: {}", root_.string(), system_reason(errno));
  return {};
}

Result<void> Unpacker::start() {
  const std::string option = TRY(archive_option(beginning_, from_));
  Pipe pipe = TRY(make_pipe());
  const UniqueFd log(::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!log) return fail(ErrorKind::io, "cannot create {}: {}", log_.string(), system_reason(errno));
  Argv argv{"tar", "--extract", "--file=-", "--no-same-owner", "--directory=" + root_.string()};
  if (!option.empty()) argv.push_back(option);
  tar_ = TRY(start_child({.argv = std::move(argv),
                          .environment = environment_,
                          .working_directory = "/",
                          .stdin_fd = pipe.read.get(),
                          .stdout_fd = log.get(),
                          .stderr_fd = log.get(),
                          .inherited_fds = {}}));
  set_nonblocking(pipe.write);
  input_ = std::move(pipe.write);
  return give(std::exchange(beginning_, {}));
}

// Where tar has ended it takes no more: how it ended tells why.
Result<void> Unpacker::give(std::string_view bytes) {
  while (!bytes.empty()) {
    if (control_.stopped()) return fail(ErrorKind::lost, "the staging was stopped");
    const ssize_t put = ::write(input_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EPIPE) return finish();
    if (put < 0 && errno != EAGAIN && errno != EINTR)
      return fail(ErrorKind::unavailable, "{} cannot be given to tar: {}", from_, system_reason(errno));
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    pollfd room{.fd = input_.get(), .events = POLLOUT, .revents = 0};
    (void)::poll(&room, 1, kLookMilliseconds);
  }
  return {};
}

Result<void> Unpacker::bytes(std::string_view bytes) {
  if (tar_ > 0) return give(bytes);
  beginning_ += bytes;
  return beginning_.size() < kBeginning ? Result<void>() : start();
}

Result<void> Unpacker::file_end() {
  if (tar_ == 0) TRY(start());
  input_.reset();
  return finish();
}

Result<void> Unpacker::finish() {
  std::optional<ExitStatus> status;
  while (!(status = reap(tar_))) {
    if (control_.stopped()) return fail(ErrorKind::lost, "the staging was stopped");
    std::this_thread::sleep_for(Milliseconds(5));
  }
  tar_ = 0;
  const std::string said = read_file(log_).value_or(std::string());
  for (const char* word : {"Removing leading", "contains '..'"})  // GNU tar warns, and leaves that part out
    if (said.find(word) != std::string::npos) return refuse("it has names that lead out of its folder");
  if (!status->success()) return refuse("tar ended with " + status->text());
  if (input_) return refuse("tar did not read it to its end");
  if (const std::string link = link_that_leaves(root_); !link.empty())
    return refuse(fmt::format("its link {} leads out of its folder", link));
  return {};
}

}  // namespace dlrun::agent
