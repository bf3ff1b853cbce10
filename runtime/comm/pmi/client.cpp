#include "runtime/comm/pmi/client.hpp"

#include <cerrno>
#include <optional>

#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {

namespace {

Result<int> number(const Environment& environment, std::string_view name) {
  const std::string text = environment.get(name);
  const auto value = parse_integer(text, 0, 1 << 30);
  if (value) return static_cast<int>(*value);
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("{} is '{}', not a number: there is no PMI-1 service here", name, text),
            .hint = "start the job with --mpi pmi1"});
}

// The launcher answers every request with one line; unset where it closes instead.
Result<std::optional<std::string>> read_line(int fd) {
  std::string line;
  char c = 0;
  while (line.size() < 4096) {
    const ssize_t got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::lost, "the launcher does not answer: {}", system_reason(errno));
    if (got == 0) return std::optional<std::string>();
    if (c == '\n') return std::optional(line);
    line.push_back(c);
  }
  return fail(ErrorKind::lost, "the answer of the launcher's PMI service is too long");
}

Result<std::optional<std::string>> send_request(int fd, std::string_view request) {
  const std::string line = fmt::format("{}\n", request);
  if (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return fail(ErrorKind::lost, "cannot send to the launcher: {}", system_reason(errno));
  return read_line(fd);
}

tl::unexpected<Error> unexpected_answer(std::string_view answer, std::string_view request) {
  return fail(ErrorKind::lost, "the launcher answered '{}' to the PMI request '{}'", answer, request);
}

// The value of "name=" in an answer; "value=" runs to its end.
std::string field(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(fmt::format("{}=", name));
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + name.size() + 1);
  return std::string(name == "value" ? line : line.substr(0, line.find(' ')));
}

}  // namespace

Result<PmiClient> PmiClient::start(const Environment& environment) {
  const int fd = TRY(number(environment, "PMI_FD"));
  const int rank = TRY(number(environment, "PMI_RANK"));
  const int size = TRY(number(environment, "PMI_SIZE"));
  PmiClient out(fd, rank, size);
  TRY(out.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
  out.space_ = field(TRY(out.ask("cmd=get_my_kvsname", "my_kvsname")), "kvsname");
  return out;
}

Result<std::string> PmiClient::ask(const std::string& request, std::string_view expected) {
  const std::optional<std::string> answer = TRY(send_request(fd_, request));
  if (!answer) return fail(ErrorKind::lost, "the launcher has closed its PMI service");
  const std::string code = field(*answer, "rc");
  if (answer->starts_with(fmt::format("cmd={}", expected)) && (code.empty() || code == "0")) return *answer;
  return unexpected_answer(*answer, request);
}

Result<void> PmiClient::put(std::string_view key, std::string_view value) {
  TRY(ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result"));
  return {};
}
Result<std::string> PmiClient::get(std::string_view key) {
  return field(TRY(ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result")), "value");
}
Result<void> PmiClient::barrier() {
  TRY(ask("cmd=barrier_in", "barrier_out"));
  return {};
}
Result<void> PmiClient::finalize() {
  TRY(ask("cmd=finalize", "finalize_ack"));
  return {};
}
void PmiClient::abort(int code) {
  const std::string line = fmt::format("cmd=abort exitcode={}\n", code);
  if (::send(fd_, line.data(), line.size(), MSG_NOSIGNAL) < 0)
    return;  // the launcher is gone: so shall we be
}

namespace {

// A launcher that closes instead of answering lets the rank go as well.
Result<void> ask_or_be_left(int fd, std::string_view request, std::string_view expected) {
  const std::optional<std::string> answer = TRY(send_request(fd, request));
  if (!answer || answer->starts_with(fmt::format("cmd={}", expected))) return {};
  return unexpected_answer(*answer, request);
}

}  // namespace

Result<void> pmi_finalize(std::string_view pmi_fd) {
  const auto fd = parse_integer(std::string(pmi_fd), 0, 1 << 30);
  if (!fd) return fail(ErrorKind::internal, "PMI_FD is '{}', not a descriptor number", pmi_fd);
  TRY(ask_or_be_left(static_cast<int>(*fd), "cmd=barrier_in", "barrier_out"));
  return ask_or_be_left(static_cast<int>(*fd), "cmd=finalize", "finalize_ack");
}

}  // namespace dlrun::runtime
