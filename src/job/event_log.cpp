#include "src/job/event_log.hpp"

#include <cerrno>

#include <fcntl.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::job {

Result<EventLog> EventLog::open(const std::filesystem::path& path, const Clock& clock) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) return fail(ErrorKind::io, "cannot create {}: {}", path.string(), system_reason(errno));
  return EventLog(std::move(fd), path, clock);
}

void EventLog::add(const Json& event) {
  if (!state_) return;
  Json line{{"time", format_utc(clock_->now())}};
  line.update(event);
  state_ = write_all(fd_.get(), to_text(line) + "\n", path_);
}

}  // namespace dlrun::job
