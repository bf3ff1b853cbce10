// A rank that checks the training runtime's Communicator in the world it finds itself in: every collective
// with known answers, then the orderly end.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "runtime/comm/allreduce/choose_device_allreduce.hpp"
#include "runtime/comm/communicator.hpp"
#include "src/base/exit_code.hpp"
#include "tests/unit/comm/fake_device.hpp"

namespace dlrun::runtime {

namespace {

Result<void> expect(bool right, const char* what) {
  if (right) return {};
  return fail(ErrorKind::internal, "{} gives a wrong answer", what);
}

bool all_are(std::span<const float> data, float expected) {
  return std::all_of(data.begin(), data.end(), [&](float x) { return x == expected; });
}

// Several at once, as the buckets of a step; all numbers are whole, so that no order and no wire changes
// them.
Result<void> check_sums(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  std::vector<float> large(3'000'001, static_cast<float>(world.rank() + 1));
  std::vector<float> middle(20'000, static_cast<float>(world.rank()));
  std::vector<float> small(17, 0.5F);
  TRY(world.allreduce_start(large));
  TRY(world.allreduce_start(middle));
  TRY(world.allreduce_start(small));
  TRY(world.wait_all());
  TRY(expect(all_are(large, ranks * (ranks + 1) / 2), "allreduce of a large array"));
  TRY(expect(all_are(middle, ranks * (ranks - 1) / 2), "allreduce of a middling array"));
  TRY(expect(all_are(small, ranks / 2), "allreduce of a small array"));
  double one = 1;
  TRY(world.allreduce(std::span<double>(&one, 1)));
  return expect(one == static_cast<double>(world.size()), "allreduce of doubles");
}

Result<void> check_short_wires(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  for (const Wire wire : {Wire::bf16, Wire::f16}) {
    std::vector<float> data(1'000'003, static_cast<float>(world.rank() + 1));
    TRY(world.rounded_allreduce_start(data, wire));
    TRY(world.wait_all());
    TRY(expect(all_are(data, ranks * (ranks + 1) / 2), "allreduce on a short wire"));
  }
  return {};
}

Result<void> check_servers(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  std::vector<float> data(700'000, static_cast<float>(world.rank() + 1));
  std::vector<ServedPiece> pieces;
  for (int piece = 0; piece < 7; ++piece)
    pieces.push_back(
        {std::span(data).subspan(static_cast<std::size_t>(piece) * 100'000, 100'000), piece % world.size()});
  TRY(world.served_sum_start(pieces));
  TRY(world.wait_all());
  return expect(all_are(data, ranks * (ranks + 1) / 2), "a sum by servers");
}

Result<void> check_copies(Communicator& world) {
  const int root = world.size() - 1;
  int word = world.rank() == root ? 4711 : 0;
  TRY(world.broadcast(std::as_writable_bytes(std::span(&word, 1)), root));
  TRY(expect(word == 4711, "broadcast"));
  const int mine = world.rank();
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::vector<int> expected(all.size());
  std::iota(expected.begin(), expected.end(), 0);
  TRY(world.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return expect(all == expected, "allgather");
}

// The ranks of even and of odd number, each by themselves; all together where that is not even.
Result<void> check_groups(Communicator& world) {
  std::vector<int> group;
  const int apart = world.size() % 2 == 0 ? 2 : 1;
  float expected = 0;
  for (int rank = world.rank() % apart; rank < world.size(); rank += apart) {
    group.push_back(rank);
    expected += static_cast<float>(rank + 1);
  }
  for (const Wire wire : {Wire::f32, Wire::bf16, Wire::f16}) {
    std::vector<float> data(300'001, static_cast<float>(world.rank() + 1));
    TRY(world.group_sum(group, data, wire));
    TRY(expect(all_are(data, expected), "a sum over a group"));
  }
  return {};
}

// Each rank a node of its own, so that all of the sum crosses by this world, from a thread as a driver has.
Result<void> check_crossings(Communicator& world) {
  if (world.size() == 1) return {};
  const auto nodes = Environment::from_entries({"DLRUN_ALLREDUCE=hierarchical", "DLRUN_NODE_RANKS=1"});
  const auto ranks = static_cast<float>(world.size());
  for (const Wire wire : {Wire::f32, Wire::bf16}) {
    const NamedAllreduce made =
        TRY(make_device_sum(world, std::make_shared<test::FakeDevice>(), wire, nodes, FAKE_NCCL));
    std::vector<float> data(300'001, static_cast<float>(world.rank() + 1));
    Result<void> done;
    std::thread([&] { done = made.sum->sum(data.data(), data.size(), nullptr); }).join();
    TRY(done);
    TRY(made.sum->check());
    TRY(expect(all_are(data, ranks * (ranks + 1) / 2), "a sum over nodes"));
  }
  return {};
}

Result<void> run() {
  const Environment environment = Environment::of_this_process();
  const auto world = TRY(make_communicator(environment));
  TRY(check_sums(*world));
  if (!environment.find("DLRUN_ALLREDUCE")) TRY(check_short_wires(*world));  // those send f32
  TRY(check_servers(*world));
  TRY(check_copies(*world));
  TRY(check_groups(*world));
  TRY(check_crossings(*world));
  TRY(world->barrier());
  std::printf("rank %d of %d: %s\n", world->rank(), world->size(), world->description().c_str());
  if (!world->note().empty()) std::printf("%s\n", world->note().c_str());
  std::fflush(stdout);
  return world->finish();
}

}  // namespace

}  // namespace dlrun::runtime

int main() {
  const auto result = dlrun::runtime::run();
  if (result) return 0;
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  return dlrun::to_int(dlrun::exit_code(result.error().kind));
}
