#include "tests/unit/mpi/world.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "src/agent/launcher_variables.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/base/file.hpp"
#include "src/process/child.hpp"
#include "src/protocol/message_stream.hpp"

namespace dlrun::test {

namespace {

const int processors = static_cast<int>(std::thread::hardware_concurrency());

[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "test world: %s\n", text.c_str());
  std::_Exit(99);
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

plan::NodeSlice slice_for(const WorldSpec& spec, int node, int nodes) {
  plan::NodeSlice slice;
  slice.plan.job_id = spec.job_id;
  slice.plan.mpi = spec.mpi;
  slice.node = NodeIndex(node);
  slice.node_of_rank = spec.node_of_rank;
  for (int i = 0; i < nodes; ++i)
    slice.plan.nodes.push_back({NodeIndex(i), HostName("node" + std::to_string(i))});
  for (std::size_t r = 0; r < spec.node_of_rank.size(); ++r) {
    if (spec.node_of_rank[r] == node) {
      plan::RankPlan rank;
      rank.rank = Rank(static_cast<int>(r));
      rank.node = NodeIndex(node);
      rank.local_rank = LocalRank(static_cast<int>(slice.plan.ranks.size()));
      rank.argv = spec.argv;
      slice.plan.ranks.push_back(rank);
    }
  }
  return slice;
}

// One pretend node: lives in a process of its own.
class WorldNode {
 public:
  WorldNode(const WorldSpec& spec, int index, int nodes, UniqueFd head, std::string scratch)
      : spec_(spec), index_(index), slice_(slice_for(spec, index, nodes)), scratch_(std::move(scratch)) {
    must(loop_.take_signals({SIGCHLD}, [this](const CaughtSignal&) { reap_children(); }));
    head_ = std::make_unique<MessageStream>(
        loop_, std::move(head), UniqueFd(),
        MessageStream::Handlers{.message = [this](Message m) { heard(std::move(m)); },
                                .closed =
                                    [this](const std::string&) {
                                      head_gone_ = true;
                                      kill_all();
                                    },
                                .drained = [] {}});
  }

  void run() {
    must(make_directories(scratch_, Access::owner_only));
    service_ = must(
        agent::make_mpi_service(slice_, Environment(), scratch_, loop_, callbacks()));  // nullptr for none
    for (const plan::RankPlan& rank : slice_.plan.ranks) start(rank);
    while (!children_.empty()) must(loop_.turn());
    service_.reset();
    head_->send({.header = {{"type", "end"}}});
    while (!head_gone_) must(loop_.turn());  // the head closes: a message of its own may be under way
  }

 private:
  agent::MpiService::Callbacks callbacks() {
    return {.connected = [this](Rank r) { tell("connected", r); },
            .finalized = [this](Rank r) { tell("finalized", r); },
            .aborted =
                [this](Rank, int code, const std::string& reason) {
                  head_->send({.header = {{"type", "aborted"}, {"code", code}, {"reason", reason}}});
                },
            .exchange =
                [this](const std::string& key, std::string blob) {
                  head_->send({.header = {{"type", "exchange"}, {"key", key}}, .body = std::move(blob)});
                },
            .log =
                [this](const std::string& text) {
                  head_->send({.header = {{"type", "log"}, {"text", text}}});
                }};
  }

  void tell(const char* type, Rank rank) { head_->send({.header = {{"type", type}, {"rank", rank.get()}}}); }

  void start(const plan::RankPlan& rank) {
    const agent::MpiBootstrap bootstrap =
        service_ ? must(service_->bootstrap(rank.rank)) : agent::MpiBootstrap{};
    Environment environment = Environment::of_this_process();
    agent::scrub_launcher_variables(environment);
    environment.merge(spec_.environment);
    if (!spec_.node_environment.empty())
      environment.merge(spec_.node_environment[static_cast<std::size_t>(index_)]);
    environment.set("DLRUN_SIZE", std::to_string(slice_.world_size()));
    environment.set("DLRUN_RANK", std::to_string(rank.rank.get()));
    environment.set("TMPDIR", scratch_);  // an MPI left to itself keeps session files there
    agent::apply(bootstrap, environment);
    ChildSpec child;
    child.argv = rank.argv;
    child.environment = environment;
    child.stdout_fd = 1;
    child.stderr_fd = 2;
    child.processors = {rank.rank.get() % processors};
    for (const UniqueFd& fd : bootstrap.child_fds) child.inherited_fds.push_back(fd.get());
    children_[must(start_child(child))] = rank.rank;
    if (service_) service_->started(rank.rank);
  }

  void reap_children() {
    for (auto child = children_.begin(); child != children_.end();) {
      const auto [pid, rank] = *child;
      const auto status = reap(pid);
      if (!status) {
        ++child;
        continue;
      }
      child = children_.erase(child);
      if (service_) service_->exited(rank);
      head_->send({.header = {{"type", "exited"}, {"rank", rank.get()}, {"code", status->code()}}});
    }
  }

  void heard(Message message) {
    if (message.type() == "kill") return kill_all();
    std::vector<std::string> blobs;
    std::size_t at = 0;
    for (const std::size_t length : message.header["lengths"].get<std::vector<std::size_t>>()) {
      blobs.push_back(message.body.substr(at, length));
      at += length;
    }
    service_->exchanged(message.header["key"].get<std::string>(), blobs);
  }

  void kill_all() {
    for (const auto& [pid, rank] : children_) ::kill(-pid, SIGKILL);
  }

  const WorldSpec& spec_;
  int index_;
  plan::NodeSlice slice_;
  std::string scratch_;
  EventLoop loop_;
  std::unique_ptr<MessageStream> head_;
  std::unique_ptr<agent::MpiService> service_;
  std::map<pid_t, Rank> children_;
  bool head_gone_ = false;
};

class Head {
 public:
  Head(const WorldSpec& spec, int nodes) : spec_(spec), nodes_(nodes) {
    end_.job_id = spec.job_id;
    end_.ranks.resize(spec.node_of_rank.size());
  }

  WorldEnd run() {
    char name[] = "/tmp/dlrun-world-XXXXXX";
    const std::string folder = ::mkdtemp(name);
    UniqueFd output(::open((folder + "/output").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pid_t> pids;
    for (int node = 0; node < nodes_; ++node) pids.push_back(fork_node(node, folder, output.get()));
    while (running_ > 0) must(loop_.turn());
    for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
    end_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    streams_.clear();
    end_.output = must(read_file(folder + "/output"));
    std::filesystem::remove_all(folder);
    return std::move(end_);
  }

 private:
  pid_t fork_node(int node, const std::string& folder, int output) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up("socketpair");
    const pid_t pid = ::fork();
    if (pid < 0) give_up("fork");
    if (pid == 0) {
      streams_.clear();
      ::close(ends[0]);
      ::dup2(output, 1);
      ::dup2(output, 2);
      WorldNode(spec_, node, nodes_, UniqueFd(ends[1]), folder + "/" + std::to_string(node)).run();
      std::_Exit(0);
    }
    ::close(ends[1]);
    ++running_;
    streams_.push_back(std::make_unique<MessageStream>(
        loop_, UniqueFd(ends[0]), UniqueFd(),
        MessageStream::Handlers{.message = [this, node](Message m) { heard(node, m); },
                                .closed = [](const std::string& why) { give_up("a node is lost: " + why); },
                                .drained = [] {}}));
    return pid;
  }

  RankEnd& rank_of(const Message& message) {
    return end_.ranks.at(message.header["rank"].get<std::size_t>());
  }

  void heard(int node, const Message& message) {
    const std::string_view type = message.type();
    if (type == "end") {
      streams_[static_cast<std::size_t>(node)]->close();
      --running_;
    }
    if (type == "connected") rank_of(message).connected = true;
    if (type == "finalized") rank_of(message).finalized = true;
    if (type == "log") end_.log += message.header["text"].get<std::string>() + "\n";
    if (type == "exchange") join(node, message);
    if (type == "aborted") {
      end_.abort_code = message.header["code"].get<int>();
      end_.abort_reason = message.header["reason"].get<std::string>();
      kill_all();
    }
    if (type == "exited") {
      RankEnd& rank = rank_of(message);
      rank.code = message.header["code"].get<int>();
      if (rank.code != 0 || (rank.connected && !rank.finalized)) kill_all();
    }
  }

  void join(int node, const Message& message) {
    const auto key = message.header["key"].get<std::string>();
    auto& blobs = gathering_[key];
    blobs[node] = message.body;
    if (static_cast<int>(blobs.size()) < nodes_) return;
    Message all{.header = {{"type", "exchanged"}, {"key", key}, {"lengths", Json::array()}}};
    for (const auto& [from, blob] : blobs) {
      all.header["lengths"].push_back(blob.size());
      all.body += blob;
    }
    gathering_.erase(key);
    ++end_.exchanges;
    for (const auto& stream : streams_) stream->send(all);
  }

  void kill_all() {
    for (const auto& stream : streams_) stream->send({.header = {{"type", "kill"}}});
  }

  const WorldSpec& spec_;
  int nodes_;
  EventLoop loop_;
  std::vector<std::unique_ptr<MessageStream>> streams_;
  std::map<std::string, std::map<int, std::string>> gathering_;
  int running_ = 0;
  WorldEnd end_;
};

}  // namespace

WorldEnd run_world(const WorldSpec& given) {
  static int count = 0;
  std::signal(SIGPIPE, SIG_IGN);  // as dlrun does: a node that is gone is an error of a write
  WorldSpec spec = given;
  if (spec.job_id.empty()) spec.job_id = fmt::format("test-{}-{}", ::getpid(), ++count);
  int nodes = 0;
  for (const int node : spec.node_of_rank) nodes = std::max(nodes, node + 1);
  return Head(spec, nodes).run();
}

}  // namespace dlrun::test
