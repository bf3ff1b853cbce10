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

// Several at once, as the buckets of a step; all numbers are whole, so that no order and no dtype changes
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

Result<void> check_16_bit_dtypes(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16}) {
    std::vector<float> data(1'000'003, static_cast<float>(world.rank() + 1));
    TRY(world.allreduce_start(data, dtype));
    TRY(world.wait_all());
    TRY(expect(all_are(data, ranks * (ranks + 1) / 2), "allreduce in a 16-bit dtype"));
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
  TRY(world.parameter_server_allreduce_start(pieces));
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

// Blocks of different content for every rank and sender.
Result<void> check_reduce_scatter(Communicator& world, CommDtype dtype) {
  const auto ranks = static_cast<std::size_t>(world.size());
  for (const std::size_t block : {std::size_t{0}, std::size_t{3}, std::size_t{300'001}}) {
    std::vector<float> data(ranks * block), mine(block);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(i / block * 8 + static_cast<std::size_t>(world.rank()));
    TRY(world.reduce_scatter(data, mine, dtype));
    const auto sum =
        static_cast<float>(ranks * (ranks - 1) / 2 + 8 * ranks * static_cast<std::size_t>(world.rank()));
    TRY(expect(all_are(mine, sum), "reduce-scatter"));
  }
  return {};
}

// A token round the ring.
Result<void> check_messages(Communicator& world) {
  if (world.size() == 1) return {};
  const int right = (world.rank() + 1) % world.size(),
            left = (world.rank() + world.size() - 1) % world.size();
  std::vector<int> token(100'000, 7);
  const auto bytes = std::as_writable_bytes(std::span(token));
  if (world.rank() > 0) TRY(world.receive(bytes, left));
  for (int& word : token) ++word;
  TRY(world.send(bytes, right));
  if (world.rank() == 0) TRY(world.receive(bytes, left));
  return expect(token.back() == 7 + (world.rank() == 0 ? world.size() : world.rank() + 1),
                "send and receive");
}

// All collectives of a group, whose members are these ranks of the world.
Result<void> check_group(Communicator& group, const std::vector<int>& members, Communicator& world) {
  TRY(expect(group.size() == static_cast<int>(members.size()), "the size of a group"));
  TRY(expect(members.at(static_cast<std::size_t>(group.rank())) == world.rank(), "the rank in a group"));
  const auto sum = static_cast<float>(std::accumulate(members.begin(), members.end(), 0));
  for (const std::size_t length : {std::size_t{5}, std::size_t{300'001}}) {
    std::vector<float> data(length, static_cast<float>(world.rank()));
    TRY(group.allreduce(data));
    TRY(expect(all_are(data, sum), "allreduce of a group"));
  }
  int word = world.rank();
  TRY(group.broadcast(std::as_writable_bytes(std::span(&word, 1)), group.size() - 1));
  TRY(expect(word == members.back(), "broadcast in a group"));
  std::vector<int> all(members.size());
  const int mine = world.rank();
  TRY(group.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  TRY(expect(all == members, "allgather of a group"));
  TRY(check_reduce_scatter(group, CommDtype::f32));
  TRY(check_messages(group));
  return group.barrier();
}

// Groups of uneven size: rank 0 alone, the others in reverse order; then the others once more by parity.
Result<void> check_groups(Communicator& world) {
  const bool alone = world.rank() == 0;
  const auto group = TRY(world.split(alone ? 7 : -3, -world.rank()));
  std::vector<int> members;
  for (int rank = world.size() - 1; rank > 0; --rank) members.push_back(rank);
  if (alone) members = {0};
  TRY(check_group(*group, members, world));
  const auto nested = TRY(group->split(world.rank() % 2, world.rank()));
  const std::vector<int> parents = members;
  members.clear();
  for (const int rank : parents)
    if (rank % 2 == world.rank() % 2) members.insert(members.begin(), rank);
  TRY(check_group(*nested, members, world));
  std::vector<float> together(1000, 1);
  TRY(world.allreduce(together));  // the world goes on beside its groups
  return expect(all_are(together, static_cast<float>(world.size())), "allreduce beside groups");
}

Result<void> check_groups_in_16_bits(Communicator& world) {
  const auto group = TRY(world.split(world.rank() % 2, world.rank()));
  float expected = 0;
  for (int rank = world.rank() % 2; rank < world.size(); rank += 2) expected += static_cast<float>(rank + 1);
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16}) {
    std::vector<float> data(300'001, static_cast<float>(world.rank() + 1));
    TRY(group->allreduce(data, dtype));
    TRY(expect(all_are(data, expected), "allreduce of a group in 16 bits"));
    TRY(check_reduce_scatter(*group, dtype));
  }
  return {};
}

// Rank 1 expects another length than rank 0 sends, in a group of the two.
Result<void> exchange_of_two_lengths(Communicator& world) {
  const auto pair = TRY(world.split(world.rank() / 2, world.rank()));
  std::vector<std::byte> data(8);
  if (world.rank() == 0) return pair->send(std::span(data).first(4), 1);  // which an MPI by itself would take
  return world.rank() == 1 ? pair->receive(data, 0) : Result<void>{};
}

// Each rank a node of its own, so that all of the sum crosses by this world, from a thread as a driver has.
Result<void> check_crossings(Communicator& world) {
  if (world.size() == 1) return {};
  const auto nodes = Environment::from_entries({"DLRUN_ALLREDUCE=hierarchical", "DLRUN_NODE_RANKS=1"});
  const auto ranks = static_cast<float>(world.size());
  for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16}) {
    const NamedAllreduce made = TRY(make_device_allreduce({.world = world,
                                                           .calls = std::make_shared<test::FakeDevice>(),
                                                           .dtype = dtype,
                                                           .environment = nodes,
                                                           .library = FAKE_NCCL},
                                                          TRY(choose_allreduce(nodes))));
    std::vector<float> data(300'001, static_cast<float>(world.rank() + 1));
    Result<void> done;
    std::thread([&] { done = made.sum->sum(data.data(), data.size(), nullptr); }).join();
    TRY(done);
    TRY(made.sum->check());
    TRY(expect(all_are(data, ranks * (ranks + 1) / 2), "an allreduce over nodes"));
  }
  return {};
}

// What an error of a collective does in training: this rank takes the others along.
int run_with_two_lengths() {
  const auto world = make_communicator(Environment::of_this_process());
  if (!world) return 1;
  const auto result = exchange_of_two_lengths(**world);
  if (!result) std::fprintf(stderr, "%s\n", result.error().text().c_str());
  if (!result) (*world)->abort(3);
  return (*world)->finish() ? 0 : 2;
}

Result<void> run() {
  const Environment environment = Environment::of_this_process();
  const auto world = TRY(make_communicator(environment));
  TRY(check_sums(*world));
  if (!environment.find("DLRUN_ALLREDUCE")) {  // the others send f32
    TRY(check_16_bit_dtypes(*world));
    TRY(check_groups_in_16_bits(*world));
    TRY(check_crossings(*world));
  }
  TRY(check_servers(*world));
  TRY(check_copies(*world));
  TRY(check_groups(*world));
  TRY(check_reduce_scatter(*world, CommDtype::f32));
  TRY(check_messages(*world));
  TRY(world->barrier());
  std::printf("rank %d of %d: %s\n", world->rank(), world->size(), world->description().c_str());
  if (!world->note().empty()) std::printf("%s\n", world->note().c_str());
  std::fflush(stdout);
  return world->finish();
}

}  // namespace

}  // namespace dlrun::runtime

int main(int argc, char**) {
  if (argc > 1) return dlrun::runtime::run_with_two_lengths();
  const auto result = dlrun::runtime::run();
  if (result) return 0;
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  return dlrun::to_int(dlrun::exit_code(result.error().kind));
}
