#include "runtime/comm/pmi/finalize.hpp"

#include <cerrno>
#include <charconv>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::runtime {

namespace {

// The launcher answers every request with one line; it may close instead, which is a farewell too.
Result<std::string> read_answer(int fd) {
  std::string line;
  char c = 0;
  while (line.size() < 1024) {
    const ssize_t got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::lost, "the launcher does not answer: {}", system_reason(errno));
    if (got == 0 || c == '\n') break;
    line.push_back(c);
  }
  return line;
}

// A launcher that closes instead of answering lets us go as well.
Result<void> ask(int fd, std::string_view request, std::string_view expected) {
  const std::string line = fmt::format("cmd={}\n", request);
  if (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return fail(ErrorKind::lost, "the launcher does not listen: {}", system_reason(errno));
  const std::string answer = TRY(read_answer(fd));
  if (answer.empty() || answer.starts_with(fmt::format("cmd={}", expected))) return {};
  return fail(ErrorKind::lost, "the launcher answers '{}' to the PMI request {}", answer, request);
}

}  // namespace

Result<void> pmi_finalize(std::string_view pmi_fd) {
  int fd = -1;
  const auto [end, error] = std::from_chars(pmi_fd.data(), pmi_fd.data() + pmi_fd.size(), fd);
  if (error != std::errc{} || end != pmi_fd.data() + pmi_fd.size() || fd < 0)
    return fail(ErrorKind::internal, "PMI_FD is '{}', which is no descriptor number", pmi_fd);
  TRY(ask(fd, "barrier_in", "barrier_out"));
  return ask(fd, "finalize", "finalize_ack");
}

}  // namespace dlrun::runtime
