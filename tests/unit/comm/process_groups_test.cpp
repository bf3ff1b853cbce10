// Process groups over the real links between ranks that are threads: uneven, nested, of one rank, beside each
// other.
#include <atomic>
#include <numeric>

#include <doctest/doctest.h>

#include "runtime/comm/host_communicator.hpp"
#include "runtime/comm/one_rank.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/socket_ranks.hpp"

namespace dlrun::runtime {
namespace {

// A world as a backend makes it, without a launcher.
class SocketWorld final : public HostCommunicator {
 public:
  SocketWorld(SocketTransport& link, JobThread& thread, const AllreduceChoice& choice)
      : thread_(thread), collectives_(link, thread, choice, {}) {
    use(collectives_, {*this, link, thread}, whole_world(link.size()));
  }
  std::string description() const override { return "sockets"; }
  void give_up() override { thread_.give_up(); }
  [[noreturn]] void abort(int) override { std::abort(); }
  Result<void> finish() override { return barrier(); }

 private:
  JobThread& thread_;
  HostCollectives collectives_;
};

// How many ranks say yes.
int count_right(int ranks, const AllreduceChoice& choice, const std::function<bool(Communicator&)>& body) {
  std::atomic<int> right = 0;
  test::on_socket_ranks(ranks, [&](SocketTransport& link, JobThread& thread) {
    SocketWorld world(link, thread, choice);
    if (body(world) && world.barrier()) ++right;
  });
  return right;
}
int count_right(int ranks, const std::function<bool(Communicator&)>& body) {
  return count_right(ranks, {}, body);
}

std::vector<int> members_of(Communicator& group, int world_rank) {
  std::vector<int> all(static_cast<std::size_t>(group.size()));
  const auto done =
      group.allgather(std::as_bytes(std::span(&world_rank, 1)), std::as_writable_bytes(std::span(all)));
  return done ? all : std::vector<int>{};
}

// Every collective of the group: its sums over the members' own numbers, in the order of the group.
bool all_collectives_are_right(Communicator& group, const std::vector<int>& members, int world_rank) {
  if (members_of(group, world_rank) != members) return false;
  const std::size_t ranks = members.size(), block = 1001;
  const Arrays all = random_arrays(8, ranks * block, 100);
  Arrays of_members;
  for (const int member : members) of_members.push_back(all[static_cast<std::size_t>(member)]);
  const std::vector<float> sum = sum_in_rank_order(of_members);
  const std::vector<float>& own = all[static_cast<std::size_t>(world_rank)];
  std::vector<float> mine(block), whole = own;
  if (!group.reduce_scatter(own, mine) || !group.allreduce(whole)) return false;
  const auto first = sum.begin() + static_cast<std::ptrdiff_t>(block) * group.rank();
  if (!std::equal(mine.begin(), mine.end(), first)) return false;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (whole[i] != doctest::Approx(sum[i]).epsilon(1e-4).scale(100)) return false;
  std::vector<double> doubles{static_cast<double>(world_rank), 1};
  if (!group.allreduce(doubles) || doubles[1] != static_cast<double>(ranks)) return false;
  int word = world_rank;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  if (!group.broadcast(bytes, group.size() - 1) || word != members.back()) return false;
  if (group.rank() + 1 == group.size() && group.size() > 1 && !group.send(bytes, 0)) return false;
  if (group.rank() == 0 && group.size() > 1 && !group.receive(bytes, group.size() - 1)) return false;
  return word == members.back() && group.barrier().has_value();
}

}  // namespace

TEST_CASE("groups of uneven size have all collectives, each among its own ranks") {
  CHECK(count_right(5, [](Communicator& world) {
          const bool first = world.rank() < 3;
          const auto group = world.split(first ? 0 : 1, 0);
          const std::vector<int> members = first ? std::vector<int>{0, 1, 2} : std::vector<int>{3, 4};
          return group &&
                 (*group)->description() == (first ? "3 of 5 ranks: sockets" : "2 of 5 ranks: sockets") &&
                 all_collectives_are_right(**group, members, world.rank());
        }) == 5);
}

TEST_CASE("keys order the ranks of a group, and equal ones leave them in the parent's order") {
  CHECK(count_right(4, [](Communicator& world) {
          const auto reversed = world.split(5, -world.rank());
          const auto last_first = world.split(5, world.rank() == 3 ? -1 : 0);
          return reversed && last_first &&
                 all_collectives_are_right(**reversed, {3, 2, 1, 0}, world.rank()) &&
                 all_collectives_are_right(**last_first, {3, 0, 1, 2}, world.rank());
        }) == 4);
}

TEST_CASE("a group is split again, and goes on when its parent is gone") {
  CHECK(count_right(6, [](Communicator& world) {
          auto rows = world.split(world.rank() / 4, -world.rank());  // 3 2 1 0 | 5 4
          if (!rows) return false;
          const auto nested = (*rows)->split((*rows)->rank() % 2, 0);
          rows->reset();
          const std::vector<std::vector<int>> expected{{2, 0}, {3, 1}, {2, 0}, {3, 1}, {4}, {5}};
          return nested && all_collectives_are_right(
                               **nested, expected[static_cast<std::size_t>(world.rank())], world.rank());
        }) == 6);
}

TEST_CASE("a group of one rank is done at once, beside the larger one") {
  CHECK(count_right(3, [](Communicator& world) {
          const auto group = world.split(world.rank() == 1 ? 1 : 0, 0);
          return group &&
                 all_collectives_are_right(
                     **group, world.rank() == 1 ? std::vector<int>{1} : std::vector<int>{0, 2}, world.rank());
        }) == 3);
  const auto alone = make_one_rank_communicator();
  const auto again = alone->split(3, 4);
  REQUIRE(again);
  CHECK(all_collectives_are_right(**again, {0}, 0));
}

TEST_CASE("two groups that share ranks, and the world, work in turns") {
  CHECK(count_right(4, [](Communicator& world) {
          const auto rows = world.split(world.rank() / 2, 0), columns = world.split(world.rank() % 2, 0);
          if (!rows || !columns) return false;
          std::vector<float> of_row(100'000, 1), of_column(100'000, 2), of_all(100'000, 3);
          if (!(*rows)->allreduce_start(of_row) || !(*columns)->allreduce_start(of_column) ||
              !world.allreduce_start(of_all) || !world.wait_all())
            return false;
          const auto all_are = [](const std::vector<float>& numbers, float value) {
            return std::all_of(numbers.begin(), numbers.end(), [value](float x) { return x == value; });
          };
          return all_are(of_row, 2) && all_are(of_column, 4) && all_are(of_all, 12);
        }) == 4);
}

TEST_CASE("a group gives the bits of a world of its size, by every algorithm") {
  const Arrays arrays = random_arrays(3, 70'001, 100);
  for (const char* name : {"auto", "ring", "recursive-halving-doubling", "direct"}) {
    CAPTURE(name);
    const AllreduceChoice choice{.algorithm = find_allreduce(name)};
    Arrays in_world = arrays, in_group = arrays;
    CHECK(count_right(3, choice, [&](Communicator& world) {
            return world.allreduce(in_world[static_cast<std::size_t>(world.rank())]).has_value();
          }) == 3);
    CHECK(count_right(5, choice, [&](Communicator& world) {
            const auto group = world.split(world.rank() < 2 ? 0 : 1, 0);  // ranks 2, 3 and 4
            if (!group) return false;
            return world.rank() < 2 ||
                   (*group)->allreduce(in_group[static_cast<std::size_t>(world.rank()) - 2]);
          }) == 5);
    CHECK(in_group == in_world);
  }
}

TEST_CASE("the algorithm that a job names is refused a dtype that it has not") {
  CHECK(count_right(2, {.algorithm = find_allreduce("ring")}, [](Communicator& world) {
          std::vector<float> data(100);
          const auto refused = world.allreduce(data, CommDtype::bf16);
          return !refused &&
                 refused.error().what ==
                     "train.allreduce.algorithm is 'ring', which sends f32, and the job asks for bf16";
        }) == 2);
}

TEST_CASE("lengths that differ between the ranks of a group are an error that names the rank") {
  std::atomic<int> told = 0;
  test::on_socket_ranks(3, [&](SocketTransport& link, JobThread& thread) {
    SocketWorld world(link, thread, {});
    const auto group = world.split(world.rank() == 0 ? 0 : 1, -world.rank());  // 0 | 2, 1
    REQUIRE(group);
    std::vector<float> data(world.rank() == 1 ? 10 : 12);
    const auto done = (*group)->allreduce(data);
    if (world.rank() > 0 && !done && done.error().what.find(" bytes; expected ") != std::string::npos) ++told;
    if (world.rank() == 0 && done) ++told;
  });
  CHECK(told >= 2);  // the second rank may instead see that the first has gone
}

TEST_CASE("what one rank asks for wrongly is refused before a message is sent") {
  CHECK(count_right(2, [](Communicator& world) {
          std::vector<float> data(5), mine(2);
          std::byte byte{};
          const auto no_block = world.reduce_scatter(data, mine);
          const auto no_rank = world.send({&byte, 1}, 2);
          const auto itself = world.receive({&byte, 1}, world.rank());
          return !no_block && no_rank.error().what == "rank 2 is out of range [0, 1]" &&
                 itself.error().what.ends_with("cannot send a message to itself");
        }) == 2);
}

}  // namespace dlrun::runtime
