#include "src/base/log.hpp"

#include <csignal>
#include <memory>
#include <utility>

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/basic_file_sink.h>

namespace dlrun::log {
namespace {

constexpr std::size_t kMaxWaiting = 8192;  // lines

struct Writer {
  std::shared_ptr<spdlog::details::thread_pool> thread;
  std::shared_ptr<spdlog::async_logger> logger;
};

Writer& writer() {
  static Writer instance;
  return instance;
}

// Signals are the loop's: the thread of the log takes none.
std::shared_ptr<spdlog::details::thread_pool> start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto thread = std::make_shared<spdlog::details::thread_pool>(kMaxWaiting, 1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void detail::write(const std::string& text) {
  writer().logger->debug(text);
}

Result<void> check_level(std::string_view level) {
  if (level.empty() || level == "debug") return {};
  return fail({.kind = ErrorKind::usage,
               .what = fmt::format("{}: unknown value '{}'", kVariable, level),
               .hint = "set it to debug, or unset it"});
}

Result<void> open(std::string_view level, const std::filesystem::path& file) {
  TRY(check_level(level));
  if (level.empty() || is_on()) return {};
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    writer().thread = start_thread();
    writer().logger =
        std::make_shared<spdlog::async_logger>(file.stem().string(), std::move(sink), writer().thread,
                                               spdlog::async_overflow_policy::overrun_oldest);
  } catch (const spdlog::spdlog_ex& problem) {
    return fail(ErrorKind::io, "{}: {}", kVariable, problem.what());
  }
  writer().logger->set_level(spdlog::level::debug);
  writer().logger->flush_on(spdlog::level::debug);
  writer().logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %P %v", spdlog::pattern_time_type::utc);
  detail::on = true;
  return {};
}

void close() {
  detail::on = false;
  writer() = {};
}

}  // namespace dlrun::log
