#include "runtime/comm/one_rank.hpp"

#include <cstdlib>
#include <cstring>

#include "runtime/comm/collectives.hpp"

namespace dlrun::runtime {

namespace {

class OneRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "one rank"; }
  Result<void> allreduce_start(std::span<float>, CommDtype) override { return {}; }
  Result<void> parameter_server_allreduce_start(std::span<const ServedPiece>) override { return {}; }
  Result<void> tree_allreduce_start(const TreeTerms& data) override {
    add_in_tree(*data.plan, data.terms, data.sum.data(), data.sum.size());
    return {};
  }
  Result<void> wait_all() override { return {}; }
  Result<void> allreduce(std::span<double>) override { return {}; }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype) override {
    TRY(check_reduce_scatter(data.size(), mine.size(), 1));
    if (!mine.empty()) std::memmove(mine.data(), data.data(), mine.size_bytes());
    return {};
  }
  Result<void> reduce_scatter_start(std::span<float>, std::span<const std::size_t>, CommDtype) override {
    return {};
  }
  Result<void> allgather_start(std::span<float>, std::span<const std::size_t>) override { return {}; }
  Result<void> broadcast(std::span<std::byte>, int) override { return {}; }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    TRY(check_allgather(mine.size(), all.size(), 1));
    if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
    return {};
  }
  Result<void> barrier() override { return {}; }
  Result<void> send(std::span<const std::byte>, int to) override { return no_peer(to); }
  Result<void> receive(std::span<std::byte>, int from) override { return no_peer(from); }
  Result<std::unique_ptr<Communicator>> split(int, int) override { return make_one_rank_communicator(); }
  void give_up() override {}
  [[noreturn]] void abort(int code) override { std::exit(code); }
  Result<void> finish() override { return {}; }

 private:
  static Result<void> no_peer(int rank) {
    return fail(ErrorKind::internal, "rank {} does not exist in a world of one rank", rank);
  }
};

}  // namespace

std::unique_ptr<Communicator> make_one_rank_communicator() {
  return std::make_unique<OneRank>();
}

}  // namespace dlrun::runtime
