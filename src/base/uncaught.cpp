#include "src/base/uncaught.hpp"

#include <new>
#include <string>
#include <system_error>

namespace dlrun {

Error error_of(const std::exception& uncaught) {
  const auto* const system = dynamic_cast<const std::system_error*>(&uncaught);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return {.kind = ErrorKind::unavailable,
            .what = "cannot start a thread: " + system->code().message(),
            .hint = std::string(kTaskLimitHint)};
  if (dynamic_cast<const std::bad_alloc*>(&uncaught) != nullptr)
    return {.kind = ErrorKind::unavailable,
            .what = "the system gives no more memory",
            .hint = "see ulimit -v, and memory.max of the cgroup"};
  return {.kind = ErrorKind::internal, .what = std::string("bug: ") + uncaught.what()};
}

}  // namespace dlrun
