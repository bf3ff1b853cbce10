// See own_communicator.hpp.
#include "runtime/comm/own_communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <optional>
#include <vector>

#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/host_communicator.hpp"
#include "runtime/comm/pmi/client.hpp"
#include "runtime/comm/share_memory.hpp"
#include "runtime/comm/transport/connect_to_rank.hpp"
#include "runtime/comm/transport/socket_transport.hpp"

namespace dlrun::runtime {
namespace {

std::string port_key(int rank) {
  return fmt::format("dlrun-port-{}", rank);
}

// A rank that is connected otherwise (it has an MPI) has announced no port.
Result<std::string> announcement_of(PmiClient& pmi, int rank) {
  auto announced = pmi.get(port_key(rank));
  if (announced) return announced;
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("rank {} has announced no port to rank {}", rank, pmi.rank()),
                    .hint = "if only some nodes have an MPI, set DLRUN_COMM=pmi for all ranks",
                    .also = {announced.error().what}});
}

Result<std::vector<ConnectedRank>> reach_lower_ranks(PmiClient& pmi) {
  std::vector<ConnectedRank> out;
  for (int peer = 0; peer < pmi.rank(); ++peer)
    out.push_back(TRY(connect_to_rank(pmi.rank(), peer, TRY(announcement_of(pmi, peer)))));
  return out;
}

// Each rank connects to those below it, while those above connect to it.
Result<std::vector<ConnectedRank>> connect_all(PmiClient& pmi) {
  auto port = RankPort::open();
  TRY(pmi.put(port_key(pmi.rank()), port ? port->announcement() : std::string("none")));
  TRY(pmi.barrier());
  if (!port) return tl::unexpected(std::move(port).error());
  std::set<int> higher;
  for (int peer = pmi.rank() + 1; peer < pmi.size(); ++peer) higher.insert(peer);
  auto coming = std::async(std::launch::async, [&] { return port->accept(higher); });
  auto out = reach_lower_ranks(pmi);
  if (!out) port->shut();
  auto accepted = coming.get();
  if (!out) return out;
  for (ConnectedRank& peer : TRY(std::move(accepted))) out->push_back(std::move(peer));
  return out;
}

class OwnCommunicator final : public HostCommunicator {
 public:
  OwnCommunicator(PmiClient pmi, std::vector<ConnectedRank> peers, const AllreduceChoice& choice,
                  std::string why)
      : pmi_(std::move(pmi)),
        why_(std::move(why)),
        link_(pmi_.rank(), std::move(peers), thread_),
        collectives_(link_, thread_, choice, {}) {
    use(collectives_, {*this, link_, thread_}, whole_world(link_.size()));
  }

  // Where all ranks are on one node, and all can open what rank 0 has made; or in each of several nodes.
  Result<void> share_memory(const Environment& environment) {
    const auto nodes = TRY(gather_nodes(*this, environment));
    const auto lost = [this](int rank) { return link_.lost(rank); };
    if (std::count(nodes.begin(), nodes.end(), nodes.front()) != size()) return sum_by_nodes(nodes, lost);
    if (!collectives_.may_share()) return {};
    memory_ = TRY(runtime::share_memory(*this, *this, SharedMemoryAllreduce::bytes(size())));
    if (memory_) collectives_.share(memory_->data(), lost);
    return {};
  }

  std::string description() const override {
    return collectives_.shared() ? "dlrun's own links, allreduce through shared memory"
                                 : "dlrun's own links over TCP" + nodes_text();
  }
  std::string note() const override {
    return why_.empty() ? why_ : fmt::format("no MPI ({}): ranks use {}", why_, description());
  }

  void give_up() override { thread_.give_up(); }
  [[noreturn]] void abort(int code) override {
    pmi_.abort(code);
    std::_Exit(code);
  }
  Result<void> finish() override {
    TRY(barrier());
    return pmi_.finalize();
  }

 private:
  PmiClient pmi_;
  std::string why_;
  std::optional<CommonMemory> memory_;
  SocketTransport link_;
  HostCollectives collectives_;
  JobThread thread_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_own_communicator(const Environment& environment,
                                                            const AllreduceChoice& choice, std::string why) {
  if (choice.is("mpi"))
    return fail(Error{.kind = ErrorKind::usage,
                      .what = choice.text() + ", but no MPI connects the ranks",
                      .hint = "set it to auto, ring, recursive-halving-doubling or direct"});
  PmiClient pmi = TRY(PmiClient::start(environment));
  std::vector<ConnectedRank> peers = TRY(connect_all(pmi));
  auto world = std::make_unique<OwnCommunicator>(std::move(pmi), std::move(peers), choice, std::move(why));
  TRY(world->share_memory(environment));
  return world;
}

}  // namespace dlrun::runtime
