#include "src/record/event_log.hpp"

#include <cerrno>

#include <fcntl.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::job {

Result<EventLog> EventLog::open(const std::filesystem::path& path, const Clock& clock, FileWriter& writer,
                                const plan::SecretValues& secrets) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) return fail(ErrorKind::io, "cannot create {}: {}", path.string(), system_reason(errno));
  return EventLog(std::move(fd), path, clock, writer, secrets);
}

EventLog::EventLog(UniqueFd fd, const std::filesystem::path& path, const Clock& clock, FileWriter& writer,
                   const plan::SecretValues& secrets)
    : writer_(&writer),
      clock_(&clock),
      secrets_(&secrets),
      state_(std::make_unique<Result<void>>()),
      file_(std::make_unique<AppendedFile>(
          writer, std::move(fd), path,
          AppendedFile::Callbacks{
              .failed = [state = state_.get()](const Error& error) { *state = tl::unexpected(error); },
              .drained = {}})) {}

// Programs that report without end while nothing is written may not fill the memory: then we wait.
void EventLog::add(const Json& event) {
  Json line{{"time", format_utc(clock_->now())}};
  line.update(secrets_->hidden(event));
  file_->append(to_text(line) + "\n");
  constexpr Seconds pause{0.1};
  constexpr std::size_t kMaxQueued = std::size_t{16} << 20;
  while (file_->queued() > kMaxQueued && !writer_->drain(pause)) {
  }
}

}  // namespace dlrun::job
