// See elastic_communicator.hpp.
#include "runtime/comm/elastic/elastic_communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>

#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/comm/elastic/world_line.hpp"
#include "runtime/comm/host_communicator.hpp"
#include "runtime/comm/transport/connect_to_rank.hpp"
#include "runtime/comm/transport/socket_transport.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

// How long a rank that has lost another waits until the launcher, which sees it too, calls it.
constexpr Seconds kCallComes{3};
constexpr StartLimits kLimits{.all = std::chrono::milliseconds(30'000),
                              .proof = std::chrono::milliseconds(5'000)};

// The links of one world.
struct Links {
  Links(int rank, std::vector<ConnectedRank> peers, const AllreduceChoice& choice)
      : link(rank, std::move(peers), thread), collectives(link, thread, choice, {}) {}
  SocketTransport link;
  HostCollectives collectives;
  JobThread thread;  // last: it uses all of the above
};

// Each rank connects to those below it, while those above connect to it.
Result<std::vector<ConnectedRank>> connect_all(int own, const std::vector<std::string>& ports,
                                               const RankPort& port) {
  std::set<int> higher;
  for (int peer = own + 1; peer < static_cast<int>(ports.size()); ++peer) higher.insert(peer);
  auto coming = std::async(std::launch::async, [&] { return port.accept(higher, kLimits); });
  std::vector<ConnectedRank> out;
  Result<void> reached;
  for (int peer = 0; peer < own && reached; ++peer) {
    auto one = connect_to_rank(own, peer, ports[static_cast<std::size_t>(peer)], kLimits);
    reached = std::move(one).map([&](ConnectedRank rank) { out.push_back(std::move(rank)); });
  }
  if (!reached) port.shut();
  auto accepted = coming.get();
  TRY(std::move(reached));
  for (ConnectedRank& peer : TRY(std::move(accepted))) out.push_back(std::move(peer));
  return out;
}

class ElasticCommunicator final : public HostCommunicator, private ElasticWorld {
 public:
  ElasticCommunicator(std::unique_ptr<WorldLine> line, int rank, const AllreduceChoice& choice)
      : line_(std::move(line)), own_(rank), choice_(choice) {
    line_->when_called([this](int generation) { called(generation); });
  }
  ~ElasticCommunicator() override { line_->when_called({}); }

  // It has no world, and collectives only once it has regrouped.
  void stay_outside() { rank_ = 1, size_ = 2; }

  // The world of this generation, or of a later one.
  Result<Joined> join(int generation, std::uint64_t done, Cause cause) {
    for (;;) {
      leave();
      const RankPort port = TRY(RankPort::open());
      listen_on(&port, generation);
      auto joined = join_once(generation, done, port, cause);
      listen_on(nullptr, generation_);
      if (!joined) return tl::unexpected(std::move(joined).error());
      if (*joined) return **joined;
      cause = Cause::lost;
    }
  }

  // Also while it is in no world.
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override { return "dlrun's own links over TCP, elastic"; }
  ElasticWorld* elastic() override { return this; }
  void give_up() override {
    const std::lock_guard lock(mutex_);
    if (links_) links_->thread.give_up();
  }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
  Result<void> finish() override { return {}; }  // who is left behind by its peers regroups

 private:
  Result<Joined> regroup(std::uint64_t done, Cause cause) override {
    if (cause == Cause::joining) return join(0, done, cause);
    if (cause == Cause::at_step) return join(generation_ + 1, done, cause);
    const std::optional<int> called = TRY(line_->await_call(generation_, kCallComes));
    return join(called.value_or(generation_ + 1), done, cause);
  }
  bool is_asked() const override { return line_->asked_to() > generation_; }
  bool is_lost() const override {
    const std::lock_guard lock(mutex_);
    return called_to_ > generation_;
  }
  int generation() const override { return generation_; }
  bool has_world() const override { return links_ != nullptr; }
  void set_job(const std::string& checksum) override { job_ = checksum; }
  Result<void> part(std::uint64_t done) override {
    return line_->leave({.generation = generation_, .done = done, .at_step = true, .job = job_});
  }

  // Unset where it came to nothing: `generation` is the next to try.
  Result<std::optional<Joined>> join_once(int& generation, std::uint64_t done, const RankPort& port,
                                          Cause cause) {
    TRY(line_->leave({.generation = generation,
                      .done = done,
                      .port = port.announcement(),
                      .at_step = cause == Cause::at_step,
                      .job = job_}));
    const WorldLine::News news = TRY(line_->await(generation));
    if (!news.member) return std::optional(Joined{.member = false});
    if (!news.world) return generation = news.called_to, std::optional<Joined>();
    const NewWorld& world = *news.world;
    const auto at = std::find(world.ranks.begin(), world.ranks.end(), own_);
    if (at == world.ranks.end())
      return fail(ErrorKind::unavailable, "rank {} is not in the new world of its job", own_);
    const auto rank = static_cast<int>(at - world.ranks.begin());
    auto peers = connect_all(rank, world.ports, port);
    if (!peers) {
      const std::optional<int> called = TRY(line_->await_call(generation, kCallComes));
      return generation = called.value_or(generation + 1), std::optional<Joined>();
    }
    enter(rank, std::move(*peers));
    return std::optional(Joined{.source = world.source, .behind = world.behind});
  }

  void leave() {
    std::unique_ptr<Links> old;
    const std::lock_guard lock(mutex_);
    std::swap(old, links_);
  }

  void enter(int rank, std::vector<ConnectedRank> peers) {
    auto links = std::make_unique<Links>(rank, std::move(peers), choice_);
    rank_ = rank;
    size_ = links->link.size();
    use(links->collectives, {*this, links->link, links->thread}, whole_world(links->link.size()));
    const std::lock_guard lock(mutex_);
    links_ = std::move(links);
    if (called_to_ > generation_) links_->thread.give_up();
  }

  void listen_on(const RankPort* port, int generation) {
    const std::lock_guard lock(mutex_);
    port_ = port;
    generation_ = generation;
  }

  // On the line's thread: whatever this rank waits for does not come any more.
  void called(int generation) {
    const std::lock_guard lock(mutex_);
    called_to_ = generation;
    if (generation <= generation_) return;
    if (links_) links_->thread.give_up();
    if (port_ != nullptr) port_->shut();
  }

  std::unique_ptr<WorldLine> line_;
  int own_;  // as the launcher numbers it
  std::string job_;
  int rank_ = 0, size_ = 1;
  AllreduceChoice choice_;
  mutable std::mutex mutex_;
  std::unique_ptr<Links> links_;
  const RankPort* port_ = nullptr;
  int generation_ = 0;  // of the world that it is in or waits for
  int called_to_ = 0;
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_elastic_communicator(const Environment& environment,
                                                                const AllreduceChoice& choice) {
  const auto rank = parse_integer(environment.get("DLRUN_RANK"), 0, 1 << 30);
  if (!rank) return fail(ErrorKind::usage, "DLRUN_RANK is '{}', not a rank", environment.get("DLRUN_RANK"));
  auto line = TRY(WorldLine::open(environment.get("DLRUN_CONTROL"), static_cast<int>(*rank)));
  auto out = std::make_unique<ElasticCommunicator>(std::move(line), static_cast<int>(*rank), choice);
  if (environment.find("DLRUN_JOIN")) {
    out->stay_outside();
    return out;
  }
  TRY(out->join(0, 0, ElasticWorld::Cause::joining));
  return out;
}

}  // namespace dlrun::runtime
