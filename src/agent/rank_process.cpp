#include "src/agent/rank_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schedulers/user_signals.hpp"
#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::agent {
namespace {

constexpr std::array kStreams{Stream::out, Stream::err};

// Our end does not block; the rank's end does, as programs expect.
Result<Pipe> output_pipe() {
  Pipe pipe = TRY(make_pipe());
  set_nonblocking(pipe.read);
  return pipe;
}

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

Result<UniqueFd> open_rank_log(const std::string& path) {
  UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log) return no_log(path, errno);
  return log;
}

Result<std::unique_ptr<RankProcess>> RankProcess::start(const plan::RankPlan& plan, Start start,
                                                        EventLoop& loop, FileWriter& writer,
                                                        Callbacks callbacks) {
  std::unique_ptr<RankProcess> rank(new RankProcess(plan.rank, loop, std::move(callbacks)));
  struct stat status {};
  const auto length = ::fstat(start.log.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  rank->log_ = std::make_unique<AppendedFile>(
      writer, std::move(start.log), start.log_path,
      AppendedFile::Callbacks{
          .failed = [self =
                         rank.get()](const Error& error) { self->callbacks_.log_failed(self->rank_, error); },
          .drained = [self = rank.get()] { self->update_watches(); }});
  rank->writer_ = &writer;
  rank->times_path_ = plan::rank_log_times_path(start.log_path).string();
  rank->logged_ = length;
  auto [out, out_end] = TRY(output_pipe());
  auto [err, err_end] = TRY(output_pipe());
  rank->pid_ = TRY(start_child({.argv = plan.argv,
                                .program = start.program,
                                .environment = start.environment,
                                .working_directory = start.working_directory,
                                .stdin_fd = start.input_fd,
                                .stdout_fd = out_end.get(),
                                .stderr_fd = err_end.get(),
                                .inherited_fds = start.inherited_fds,
                                .processors = start.processors,
                                .memory = start.memory,
                                .user_signals = user_signals_in(start.environment),
                                .open_files = start.open_files,
                                .other_descriptors = start.other_descriptors}));
  rank->out_.fd = std::move(out);
  rank->err_.fd = std::move(err);
  rank->resume_output();
  return rank;
}

RankProcess::~RankProcess() {
  pause_output();
  if (flush_timer_) loop_.cancel(*flush_timer_);
}

void RankProcess::signal(int number) const {
  if (pid_ > 0 && running()) ::kill(-pid_, number);
}

void RankProcess::resume_output() {
  paused_ = false;
  update_watches();
}

void RankProcess::pause_output() {
  paused_ = true;
  update_watches();
}

void RankProcess::update_watches() {
  for (const Stream stream : kStreams) {
    const int fd = pipe(stream).fd.get();
    if (fd < 0) continue;
    if (paused_ || log_->full())
      loop_.unwatch(fd);
    else
      loop_.watch(fd, POLLIN, [this, stream](short) {
        if (read_some(stream) == Reading::ended) {
          loop_.unwatch(pipe(stream).fd.get());
          pipe(stream).fd.reset();
        }
      });
  }
}

// A few lines per minute, so that `dlrun logs --since` finds where a time begins. Where they cannot be
// written the log cannot either, and that is told.
void RankProcess::mark_time() {
  const Ticks now = std::chrono::steady_clock::now();
  if (marked_ && now - *marked_ < plan::kLogTimesInterval) return;
  marked_ = now;
  writer_->run([path = times_path_,
                line = fmt::format("{} {}\n", format_utc(SystemClock().now()), logged_)]() -> Result<void> {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    return file ? write_all(file.get(), line, path) : Result<void>();
  });
}

void RankProcess::write_log(std::string_view bytes) {
  mark_time();
  log_->append(bytes);
  logged_ += bytes.size();
  if (log_->full()) update_watches();
}

// Whole lines are logged at once, so that those of both streams do not mix.
void RankProcess::take(Stream stream, std::string_view bytes) {
  OutputPipe& from = pipe(stream);
  const std::vector<std::string> lines = from.lines.add(bytes);
  const std::size_t newline = bytes.rfind('\n');
  const std::size_t whole = newline == std::string_view::npos ? 0 : newline + 1;
  if (whole > 0) write_log(std::exchange(from.unlogged, {}).append(bytes.substr(0, whole)));
  from.unlogged += bytes.substr(whole);
  from.mid_line = whole < bytes.size();
  from.has_news = from.mid_line;
  if (from.unlogged.size() > OutputLines::kMaxLine) write_log(std::exchange(from.unlogged, {}));
  if (!lines.empty()) callbacks_.lines(rank_, stream, lines);
  // The first rank's progress bar is drawn as it moves.
  constexpr Seconds shown_live{0.2}, within_a_second{0.8};
  if (from.has_news && !flush_timer_)
    flush_timer_ =
        loop_.after(rank_ == Rank(0) ? shown_live : within_a_second, [this] { flush_unfinished(); });
}

void RankProcess::flush_unfinished() {
  flush_timer_.reset();
  for (const Stream stream : kStreams) {
    OutputPipe& from = pipe(stream);
    if (!from.unlogged.empty()) write_log(std::exchange(from.unlogged, {}));
    if (std::exchange(from.has_news, false)) callbacks_.unfinished(rank_, stream, from.lines.unfinished());
  }
}

// The last line may lack its newline.
void RankProcess::finish(Stream stream) {
  OutputPipe& from = pipe(stream);
  if (std::exchange(from.mid_line, false)) write_log(std::exchange(from.unlogged, {}) + "\n");
  from.has_news = false;
  if (const auto lines = from.lines.finish(); !lines.empty()) callbacks_.lines(rank_, stream, lines);
}

RankProcess::Reading RankProcess::read_some(Stream stream) {
  static thread_local std::array<char, 65536> chunk;  // a stack may be as small as that
  const ssize_t got = ::read(pipe(stream).fd.get(), chunk.data(), chunk.size());
  if (got < 0)
    return errno == EINTR ? Reading::more_may_come : errno == EAGAIN ? Reading::would_block : Reading::ended;
  got == 0 ? finish(stream) : take(stream, {chunk.data(), static_cast<std::size_t>(got)});
  return got == 0 ? Reading::ended : Reading::more_may_come;
}

void RankProcess::drain(Stream stream) {
  // Bounded: a stray that floods the pipe after the rank's end must not hold us here.
  constexpr int kMaxReads = 64;
  for (int i = 0; i < kMaxReads && pipe(stream).fd; ++i) {
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
    finish(stream);
    if (pipe(stream).fd) loop_.unwatch(pipe(stream).fd.get());
    pipe(stream).fd.reset();
  }
}

}  // namespace dlrun::agent
