#include "src/agent/stage_in/unpacker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBeginning = 512;
constexpr int kLookMilliseconds = 100;
constexpr const char* kZipFile = ".archive.zip";
// GNU tar warns, and leaves that part of the name out.
constexpr std::array<std::string_view, 2> kLeavingNames{"Removing leading", "contains '..'"};
constexpr const char* kNamesLeave = "it has names that lead out of its folder";

bool is_program(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
}

// Of a list with one name per line. unzip would leave parts of names out, and be silent. What DOS has written
// may have its separators.
bool all_below(std::string names) {
  std::replace(names.begin(), names.end(), '\\', '/');
  for (const std::string& line : split(names, '\n'))
    if (const fs::path name(line);
        name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end())
      return false;
  return true;
}

bool is_above(const fs::path& below) {
  return !below.empty() && *below.begin() == "..";
}

// By its words, which are what the user sees; and by other links on its way, which may go up further.
bool leaves(const fs::path& root, const fs::path& folder, const fs::path& target) {
  if (target.is_absolute() || is_above((folder / target).lexically_normal())) return true;
  std::error_code problem;
  const fs::path place = fs::weakly_canonical(root / folder / target, problem);
  return !problem && is_above(place.lexically_relative(fs::canonical(root, problem)));
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
    if (leaves(root, below.parent_path(), target) && !is_program(entry->path()))
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
  // Options of the user's: with some, a part is left out, or nothing is unpacked.
  for (const char* name : {"TAR_OPTIONS", "UNZIP", "UNZIPOPT", "ZIPINFO", "ZIPINFOOPT"})
    environment_.unset(name);
}

Unpacker::~Unpacker() {
  end_program();
}

void Unpacker::end_program() {
  input_.reset();
  if (program_ <= 0) return;
  ::kill(-program_, SIGKILL);
  constexpr int kMaxLooks = 1000;
  for (int i = 0; i < kMaxLooks && !reap(program_); ++i) std::this_thread::sleep_for(Milliseconds(1));
  program_ = 0;
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
  if (said.find("backslashes as path separators") != std::string::npos)
    out.hint = "pack it anew with / between folders, as zip -r does";
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
  kind_ = TRY(archive_kind(beginning_, from_));
  if (is_zip()) {
    const fs::path archive = root_.parent_path() / kZipFile;
    input_ = UniqueFd(::open(archive.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!input_) return fail(ErrorKind::io, "cannot create {}: {}", archive.string(), system_reason(errno));
    return give(std::exchange(beginning_, {}));
  }
  Pipe pipe = TRY(make_pipe());
  Argv argv{"tar", "--extract", "--file=-", "--no-same-owner", "--directory=" + root_.string()};
  if (!kind_->option.empty()) argv.push_back(kind_->option);
  TRY(run(std::move(argv), pipe.read.get()));
  set_nonblocking(pipe.write);
  input_ = std::move(pipe.write);
  return give(std::exchange(beginning_, {}));
}

Result<void> Unpacker::run(Argv argv, int input) {
  const UniqueFd log(::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!log) return fail(ErrorKind::io, "cannot create {}: {}", log_.string(), system_reason(errno));
  Environment environment = environment_;
  if (is_zip()) environment.set("LC_ALL", "C.UTF-8");  // else it may write letters as their numbers
  auto started = start_child({.argv = std::move(argv),
                              .environment = std::move(environment),
                              .working_directory = "/",
                              .stdin_fd = input,
                              .stdout_fd = log.get(),
                              .stderr_fd = log.get(),
                              .inherited_fds = {}});
  if (!started) {
    Error error = std::move(started).error();
    error.what = fmt::format("{} cannot be unpacked: {}", from_, error.what);
    error.hint = fmt::format("install {} on the nodes, or use an archive of another kind", program_name());
    return fail(std::move(error));
  }
  program_ = *started;
  return {};
}

// Where tar has ended it takes no more: how it ended tells why.
Result<void> Unpacker::give(std::string_view bytes) {
  while (!bytes.empty()) {
    if (control_.stopped()) return fail(ErrorKind::lost, "the staging was stopped");
    const ssize_t put = ::write(input_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EPIPE) return finish();
    if (put < 0 && errno != EAGAIN && errno != EINTR)
      return fail(is_zip() ? ErrorKind::io : ErrorKind::unavailable, "{} cannot be given to {}: {}", from_,
                  program_name(), system_reason(errno));
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
  if (kind_) return give(bytes);
  beginning_ += bytes;
  return beginning_.size() < kBeginning ? Result<void>() : start();
}

Result<void> Unpacker::file_end() {
  if (!kind_) TRY(start());
  input_.reset();
  return is_zip() ? unzip() : finish();
}

Result<void> Unpacker::unzip() {
  const fs::path archive = root_.parent_path() / kZipFile;
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  TRY(run({"unzip", "-Z1", archive.string()}, nothing.get()));
  TRY(finish());
  if (!all_below(TRY(read_file(log_)))) return refuse(kNamesLeave);
  // With an empty password it asks nobody for one.
  TRY(run({"unzip", "-q", "-o", "-P", "", archive.string(), "-d", root_.string()}, nothing.get()));
  TRY(finish());
  std::error_code problem;
  fs::remove(archive, problem);
  if (problem) return fail(ErrorKind::io, "cannot remove {}: {}", archive.string(), problem.message());
  return {};
}

Result<void> Unpacker::finish() {
  std::optional<ExitStatus> status;
  while (!(status = reap(program_))) {
    if (control_.stopped()) return fail(ErrorKind::lost, "the staging was stopped");
    std::this_thread::sleep_for(Milliseconds(5));
  }
  program_ = 0;
  const std::string said = read_file(log_).value_or(std::string());
  for (const std::string_view words : kLeavingNames)
    if (said.find(words) != std::string::npos) return refuse(kNamesLeave);
  if (!status->success()) return refuse(fmt::format("{} ended with {}", program_name(), status->text()));
  if (input_) return refuse("tar did not read it to its end");
  if (const std::string link = link_that_leaves(root_); !link.empty())
    return refuse(fmt::format("its link {} leads out of its folder", link));
  return {};
}

}  // namespace dlrun::agent
