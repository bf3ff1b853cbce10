#include "runtime/comm/star_communicator.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/comm/peer_links.hpp"
#include "runtime/comm/pmi_client.hpp"
#include "runtime/comm/star_sum.hpp"

namespace dlrun::runtime {

namespace {

class Star final : public Communicator {
 public:
  Star(PmiClient pmi, std::optional<PeerLinks> links) : pmi_(std::move(pmi)), links_(std::move(links)) {}

  int rank() const override { return pmi_.rank(); }
  int size() const override { return pmi_.size(); }
  std::string description() const override { return "PMI, without MPI"; }

  Result<void> allreduce_start(std::span<float> data) override { return sum(data); }
  Result<void> wait_all() override { return {}; }
  Result<void> allreduce(std::span<double> data) override { return sum(data); }

  Result<void> broadcast(std::span<std::byte> data, int root) override {
    if (root != 0 && rank() == root) TRY(links_->send(0, data));
    if (root != 0 && rank() == 0) TRY(links_->receive(root, data));
    return from_rank_0(data, root);
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size() * static_cast<std::size_t>(size()))
      return fail(ErrorKind::internal, "allgather of {} bytes from {} ranks into {} bytes", mine.size(),
                  size(), all.size());
    if (rank() != 0) {
      TRY(links_->send(0, mine));
      return links_->receive(0, all);
    }
    if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
    for (int peer = 1; peer < size(); ++peer)
      TRY(links_->receive(peer, all.subspan(static_cast<std::size_t>(peer) * mine.size(), mine.size())));
    return from_rank_0(all, 0);
  }
  Result<void> barrier() override {
    std::byte nothing{};
    std::vector<std::byte> all(static_cast<std::size_t>(size()));
    return allgather(std::span(&nothing, 1), all);
  }
  Result<void> group_sum(std::span<const int> group, std::span<float> data, Wire wire) override {
    if (group.size() == 1) return {};
    return star_group_sum(*links_, {rank(), size(), group.front()}, data, wire);
  }
  void give_up() override {
    if (links_) links_->shut();
  }
  [[noreturn]] void abort(int code) override {
    pmi_.abort(code);
    std::_Exit(code);
  }
  Result<void> finish() override {
    TRY(barrier());
    return pmi_.finalize();
  }

 private:
  // To all but rank 0 and `but`, who have it.
  Result<void> from_rank_0(std::span<std::byte> data, int but) {
    if (rank() == 0) {
      for (int peer = 1; peer < size(); ++peer)
        if (peer != but) TRY(links_->send(peer, data));
      return {};
    }
    if (rank() == but) return {};
    return links_->receive(0, data);
  }

  // In the order of the ranks: the same world gives the same bits.
  template <class T>
  Result<void> sum(std::span<T> data) {
    const auto bytes = std::as_writable_bytes(data);
    if (rank() != 0) {
      TRY(links_->send(0, bytes));
      return links_->receive(0, bytes);
    }
    std::vector<T> theirs(data.size());
    for (int peer = 1; peer < size(); ++peer) {
      TRY(links_->receive(peer, std::as_writable_bytes(std::span(theirs))));
      for (std::size_t i = 0; i < data.size(); ++i) data[i] += theirs[i];
    }
    return from_rank_0(bytes, 0);
  }

  PmiClient pmi_;
  std::optional<PeerLinks> links_;  // none in a world of one
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_star_communicator(const Environment& environment) {
  PmiClient pmi = TRY(PmiClient::start(environment));
  std::optional<PeerLinks> links;
  if (pmi.size() > 1)
    links = TRY(PeerLinks::connect(pmi.rank(), pmi.size(), [&](std::string mine) -> Result<std::string> {
      constexpr std::string_view key = "dlrun-rank-0";
      if (pmi.rank() == 0) TRY(pmi.put(key, mine));
      TRY(pmi.barrier());
      return pmi.rank() == 0 ? std::move(mine) : TRY(pmi.get(key));
    }));
  return std::make_unique<Star>(std::move(pmi), std::move(links));
}

}  // namespace dlrun::runtime
