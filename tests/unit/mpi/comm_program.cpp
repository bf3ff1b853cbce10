// A rank that checks the training runtime's Communicator in the world it finds itself in: every collective
// with known answers, then the orderly end.
#include <cstdio>
#include <numeric>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "src/base/exit_code.hpp"

namespace dlrun::runtime {

namespace {

Result<void> expect(bool right, const char* what) {
  if (right) return {};
  return fail(ErrorKind::internal, "{} gives a wrong answer", what);
}

Result<void> check_sums(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  std::vector<float> first(3'000'001, static_cast<float>(world.rank() + 1));
  std::vector<float> second(17, 0.5F);
  TRY(world.allreduce_start(first));
  TRY(world.allreduce_start(second));
  TRY(world.wait_all());
  bool right = true;
  for (const float x : first) right = right && x == ranks * (ranks + 1) / 2;
  for (const float x : second) right = right && x == ranks / 2;
  TRY(expect(right, "allreduce of floats"));
  double one = 1;
  TRY(world.allreduce(std::span<double>(&one, 1)));
  return expect(one == static_cast<double>(world.size()), "allreduce of doubles");
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

Result<void> run() {
  const auto world = TRY(make_communicator(Environment::of_this_process()));
  TRY(check_sums(*world));
  TRY(check_copies(*world));
  TRY(world->barrier());
  std::printf("rank %d of %d: %s\n", world->rank(), world->size(), world->description().c_str());
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
