#include "src/agent/rank_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

constexpr std::array kStreams{Stream::out, Stream::err};

// Our end does not block; the rank's end does, as programs expect.
Result<std::pair<UniqueFd, UniqueFd>> output_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail(ErrorKind::unavailable, "pipe: {}", system_reason(errno));
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

// The run directory is made where dlrun runs. What is not there on another node is another file system.
tl::unexpected<Error> no_log(const std::string& path, int problem) {
  return fail(
      Error{.kind = ErrorKind::io,
            .what = fmt::format("cannot create {}: {}", path, system_reason(problem)),
            .where = {},
            .hint = problem == ENOENT
                        ? "every node must see the run directory: name one that they share, with --run-dir"
                        : "",
            .also = {}});
}

}  // namespace

Result<std::unique_ptr<RankProcess>> RankProcess::start(const plan::RankPlan& plan, const Start& start,
                                                        EventLoop& loop, Callbacks callbacks) {
  std::unique_ptr<RankProcess> rank(new RankProcess(plan.rank, loop, std::move(callbacks)));
  rank->log_path_ = start.log_path;
  rank->log_.reset(::open(start.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!rank->log_) return no_log(start.log_path, errno);
  auto [out, out_end] = TRY(output_pipe());
  auto [err, err_end] = TRY(output_pipe());
  rank->pid_ = TRY(start_child({.argv = plan.argv,
                                .program = start.program,
                                .environment = start.environment,
                                .working_directory = start.working_directory,
                                .stdout_fd = out_end.get(),
                                .stderr_fd = err_end.get(),
                                .inherited_fds = start.inherited_fds,
                                .processors = start.processors,
                                .user_signals = user_signals_in(start.environment),
                                .open_files = start.open_files}));
  rank->out_.fd = std::move(out);
  rank->err_.fd = std::move(err);
  rank->resume_output();
  return rank;
}

RankProcess::~RankProcess() {
  pause_output();
}

void RankProcess::signal(int number) const {
  if (pid_ > 0 && running()) ::kill(-pid_, number);
}

void RankProcess::resume_output() {
  for (const Stream stream : kStreams)
    if (const int fd = pipe(stream).fd.get(); fd >= 0)
      loop_.watch(fd, POLLIN, [this, stream](short) {
        if (read_some(stream) == Reading::ended) {
          loop_.unwatch(pipe(stream).fd.get());
          pipe(stream).fd.reset();
        }
      });
}

void RankProcess::pause_output() {
  for (const Stream stream : kStreams)
    if (pipe(stream).fd) loop_.unwatch(pipe(stream).fd.get());
}

void RankProcess::hand_on(Stream stream, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (log_)
    if (auto written = write_all(log_.get(), text, log_path_); !written) {
      log_.reset();
      callbacks_.log_failed(rank_, written.error());
    }
  callbacks_.lines(rank_, stream, lines);
}

RankProcess::Reading RankProcess::read_some(Stream stream) {
  Pipe& from = pipe(stream);
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(from.fd.get(), chunk.data(), chunk.size());
  if (got < 0)
    return errno == EINTR ? Reading::more_may_come : errno == EAGAIN ? Reading::would_block : Reading::ended;
  hand_on(stream,
          got == 0 ? from.lines.finish() : from.lines.add({chunk.data(), static_cast<std::size_t>(got)}));
  return got == 0 ? Reading::ended : Reading::more_may_come;
}

void RankProcess::drain(Stream stream) {
  // Bounded: a stray that floods the pipe after the rank's end must not hold us here.
  constexpr int most_reads = 64;
  for (int i = 0; i < most_reads && pipe(stream).fd; ++i) {
    const Reading reading = read_some(stream);
    if (reading == Reading::would_block) return;
    if (reading == Reading::more_may_come) continue;
    loop_.unwatch(pipe(stream).fd.get());
    pipe(stream).fd.reset();
  }
}

bool RankProcess::try_reap() {
  if (status_) return false;
  status_ = reap(pid_);
  if (!status_) return false;
  for (const Stream stream : kStreams) drain(stream);
  return true;
}

void RankProcess::close_output() {
  for (const Stream stream : kStreams) {
    drain(stream);
    hand_on(stream, pipe(stream).lines.finish());
    if (pipe(stream).fd) loop_.unwatch(pipe(stream).fd.get());
    pipe(stream).fd.reset();
  }
}

}  // namespace dlrun::agent
