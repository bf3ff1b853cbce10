#include "src/agent/pmi/pmi1_service.hpp"

#include <cerrno>
#include <map>

#include <poll.h>
#include <sys/socket.h>

#include "src/agent/job_name.hpp"
#include "src/agent/pmi/pmi1_mapping.hpp"
#include "src/agent/pmi/pmi1_protocol.hpp"
#include "src/agent/shared_files.hpp"
#include "src/base/file.hpp"
#include "src/process/line_buffer.hpp"

namespace dlrun::agent {

namespace {

constexpr int kMaxReads = 256;

struct Connection {
  UniqueFd fd;
  LineBuffer lines;
};

class Pmi1Service final : public MpiService {
 public:
  Pmi1Service(const plan::NodeSlice& slice, std::string mapping, EventLoop& loop, Callbacks callbacks)
      : loop_(loop),
        callbacks_(std::move(callbacks)),
        size_(slice.world_size()),
        files_(slice.plan, slice.node),
        protocol_(world_of(slice, std::move(mapping)), events()) {}

  ~Pmi1Service() override {
    for (auto& [rank, connection] : connections_) loop_.unwatch(connection.fd.get());
  }

  Result<MpiBootstrap> bootstrap(Rank rank) override {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return fail(ErrorKind::unavailable, "no socket for the PMI of rank {}: {}", rank, system_reason(errno));
    connections_[rank].fd.reset(ends[0]);
    MpiBootstrap bootstrap;
    bootstrap.child_fds.emplace_back(ends[1]);
    bootstrap.set = {{"PMI_FD", std::to_string(ends[1])},
                     {"PMI_RANK", std::to_string(rank.get())},
                     {"PMI_SIZE", std::to_string(size_)}};
    if (!files_.folder().empty()) bootstrap.defaults = {{"UCX_POSIX_DIR", files_.folder()}};
    return bootstrap;
  }

  void started(Rank rank) override {
    if (const auto found = connections_.find(rank); found != connections_.end())
      loop_.watch(found->second.fd.get(), POLLIN, [this, rank](short) { read(rank); });
  }

  void exited(Rank rank) override {
    read(rank);
    close(rank);
  }

  bool waits(Rank rank) const override { return protocol_.waits(rank); }

  void exchanged(const std::string& key, const std::vector<std::string>& blobs) override {
    protocol_.exchanged(key, blobs);
  }

 private:
  static Pmi1World world_of(const plan::NodeSlice& slice, std::string mapping) {
    Pmi1World world;
    world.kvs_name = job_name(slice.plan);
    world.size = slice.world_size();
    world.nodes = static_cast<int>(slice.plan.nodes.size());
    world.process_mapping = std::move(mapping);
    for (const plan::RankPlan& rank : slice.plan.ranks) world.local_ranks.push_back(rank.rank);
    return world;
  }

  Pmi1Protocol::Events events() {
    return {.reply = [this](Rank rank, const std::string& line) { send(rank, line); },
            .connected = callbacks_.connected,
            .finalized = callbacks_.finalized,
            .aborted = callbacks_.aborted,
            .exchange = callbacks_.exchange,
            .dropped = [this](Rank rank, const std::string& reason) { drop(rank, reason); }};
  }

  // Reads what is there, up to more than a socket holds, so that a rank that never stops cannot keep the
  // loop. A handled line may end the connection.
  void read(Rank rank) {
    char bytes[4096];
    for (int i = 0; i < kMaxReads; ++i) {
      const auto found = connections_.find(rank);
      if (found == connections_.end()) return;
      const ssize_t got = ::recv(found->second.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got <= 0) return close(rank);  // liveness is the agent's business: it waits for the process
      for (const std::string& line : found->second.lines.add({bytes, static_cast<std::size_t>(got)}))
        if (connections_.contains(rank)) protocol_.line(rank, line);
    }
  }

  // A client has one request under way, so a reply always fits the socket's buffer unless the client does not
  // read.
  void send(Rank rank, const std::string& line) {
    const auto found = connections_.find(rank);
    if (found == connections_.end()) return;
    const ssize_t sent =
        ::send(found->second.fd.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(line.size())) return;
    if (sent < 0 && errno == EPIPE) return close(rank);
    drop(rank, "it does not read the replies to its PMI-1 requests");
  }

  void drop(Rank rank, const std::string& reason) {
    callbacks_.log(fmt::format("rank {}: PMI-1 service ended: {}", rank, reason));
    close(rank);
  }

  void close(Rank rank) {
    const auto found = connections_.find(rank);
    if (found == connections_.end()) return;
    loop_.unwatch(found->second.fd.get());
    connections_.erase(found);
  }

  EventLoop& loop_;
  Callbacks callbacks_;
  int size_;
  SharedFiles files_;
  std::map<Rank, Connection> connections_;
  Pmi1Protocol protocol_;
};

}  // namespace

Result<std::unique_ptr<MpiService>> make_pmi1_service(const plan::NodeSlice& slice, EventLoop& loop,
                                                      MpiService::Callbacks callbacks) {
  std::string mapping = TRY(pmi1_process_mapping(slice.node_of_rank));
  return std::make_unique<Pmi1Service>(slice, std::move(mapping), loop, std::move(callbacks));
}

}  // namespace dlrun::agent
