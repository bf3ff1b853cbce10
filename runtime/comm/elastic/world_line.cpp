// See world_line.hpp.
#include "runtime/comm/elastic/world_line.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view kWhere = "control";

tl::unexpected<Error> no_agent() {
  return fail(ErrorKind::unavailable, "the agent of this rank is gone");
}

Result<UniqueFd> connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path)
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("DLRUN_CONTROL is '{}': elastic ranks need their agent", name),
                      .hint = "start the job with dlrun"});
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(ErrorKind::unavailable, "cannot connect to the agent on {}: {}", name, system_reason(errno));
  return fd;
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

Result<NewWorld> read_world(const Json& line) {
  NewWorld out;
  out.generation = TRY(field<int>(line, "new_world", kWhere));
  out.ranks = TRY(field<std::vector<int>>(line, "ranks", kWhere));
  out.ports = TRY(field<std::vector<std::string>>(line, "ports", kWhere));
  out.source = TRY(field<int>(line, "source", kWhere));
  out.behind = TRY(field<bool>(line, "behind", kWhere));
  const auto ranks = static_cast<int>(out.ranks.size());
  if (out.ports.size() != out.ranks.size() || out.source < 0 || out.source >= ranks)
    return fail(ErrorKind::internal, "the new world has {} ranks, {} ports and source {}", ranks,
                out.ports.size(), out.source);
  return out;
}

}  // namespace

Result<std::unique_ptr<WorldLine>> WorldLine::open(const std::string& socket_name, int rank) {
  UniqueFd fd = TRY(connect_to(socket_name));
  UniqueFd end(::eventfd(0, EFD_CLOEXEC));
  if (!end) return fail(ErrorKind::unavailable, "eventfd failed: {}", system_reason(errno));
  if (!send_all(fd.get(), dlrun::to_text(Json{{"rank", rank}}) + "\n")) return no_agent();
  return std::unique_ptr<WorldLine>(new WorldLine(std::move(fd), std::move(end), rank));
}

WorldLine::WorldLine(UniqueFd fd, UniqueFd end, int rank)
    : fd_(std::move(fd)), end_(std::move(end)), rank_(rank), thread_([this] { listen(); }) {}

WorldLine::~WorldLine() {
  const std::uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  thread_.join();
}

void WorldLine::listen() {
  std::string text;
  std::array<char, 16384> chunk{};
  for (;;) {
    std::array<pollfd, 2> fds{{{fd_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return lose();
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    const ssize_t got = ::read(fd_.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return lose();
    text.append(chunk.data(), static_cast<std::size_t>(got));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      take(std::string_view(text).substr(0, end));
      text.erase(0, end + 1);
    }
  }
}

void WorldLine::lose() {
  const std::lock_guard lock(mutex_);
  lost_ = true;
  news_.notify_all();
}

// Other lines are for others who listen on the same channel.
void WorldLine::take(std::string_view text) {
  const auto line = parse_json(text, std::string(kWhere));
  if (!line || !line->is_object()) return;
  const std::lock_guard lock(mutex_);
  if (line->contains("new_world")) {
    auto world = read_world(*line);
    // A world without this rank is another's: it waits for the next one.
    const bool is_in = world && std::count(world->ranks.begin(), world->ranks.end(), rank_) > 0;
    if (is_in && world->generation > world_.generation) world_ = std::move(*world);
  }
  if (line->contains("regroup")) take_call(*line);
  news_.notify_all();
}

// Where it is to be left behind a step, nothing under way is given up for it.
void WorldLine::take_call(const Json& line) {
  const auto generation = field<int>(line, "regroup", kWhere);
  const auto ranks = field<std::vector<int>>(line, "ranks", kWhere);
  const auto at_step = field<bool>(line, "at_step", kWhere);
  if (!generation || !ranks || !at_step) return;
  if (!ranks->empty() && *generation >= listed_) {
    listed_ = *generation;
    member_ = std::find(ranks->begin(), ranks->end(), rank_) != ranks->end();
  }
  if (*at_step) {
    asked_to_ = std::max(asked_to_, *generation);
  } else if (*generation > called_to_) {
    called_to_ = *generation;
    if (when_called_) when_called_(called_to_);
  }
}

int WorldLine::asked_to() const {
  const std::lock_guard lock(mutex_);
  return asked_to_;
}

Result<void> WorldLine::leave(const Leave& how) {
  const Json line{{"rank", rank_},    {"left_world", how.generation}, {"done", how.done},
                  {"port", how.port}, {"at_step", how.at_step},       {"job", how.job}};
  if (!send_all(fd_.get(), dlrun::to_text(line) + "\n")) return no_agent();
  return {};
}

Result<WorldLine::News> WorldLine::await(int generation) {
  std::unique_lock lock(mutex_);
  const auto next = [&] { return std::max(called_to_, asked_to_); };
  news_.wait(lock, [&] {
    return lost_ || leaves(generation) || next() > generation || world_.generation == generation;
  });
  if (leaves(generation)) return News{.world = {}, .called_to = listed_, .member = false};
  if (world_.generation == generation) return News{.world = world_, .called_to = generation};
  if (next() > generation) return News{.world = {}, .called_to = next()};
  return no_agent();
}

Result<std::optional<int>> WorldLine::await_call(int generation, Seconds limit) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, limit, [&] { return lost_ || called_to_ > generation; });
  if (called_to_ > generation) return std::optional(called_to_);
  if (lost_) return no_agent();
  return std::optional<int>();
}

void WorldLine::when_called(std::function<void(int)> act) {
  const std::lock_guard lock(mutex_);
  when_called_ = std::move(act);
}

}  // namespace dlrun::runtime
