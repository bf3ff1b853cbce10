// See peak_memory.hpp. VmHWM, and not getrusage()'s figure, which a process inherits from its starter.
#include "runtime/base/peak_memory.hpp"

#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {

Result<std::size_t> peak_memory_bytes() {
  const std::string status = TRY(read_file("/proc/self/status"));
  const std::string label = "VmHWM:";
  const std::size_t at = status.find(label);
  const std::size_t first = at == std::string::npos ? at : status.find_first_of("0123456789", at);
  if (first == std::string::npos) return fail(ErrorKind::internal, "/proc/self/status has no {}", label);
  const std::size_t last = status.find_first_not_of("0123456789", first);
  const std::int64_t kib = TRY(parse_integer(status.substr(first, last - first), 0, std::int64_t{1} << 50));
  return static_cast<std::size_t>(kib) * 1024;
}

}  // namespace dlrun::runtime
