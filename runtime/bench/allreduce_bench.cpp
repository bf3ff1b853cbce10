// Times the sum of float arrays over the ranks of this world: microseconds (median of the slowest rank) and
// GB/s for 4 kB to 64 MB. Started like any rank: by dlrun, or by an MPI's own launcher with DLRUN_COMM set.
// One argument names the dtype: f32, bf16 or f16.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "src/base/exit_code.hpp"

namespace dlrun::runtime {

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

Result<double> once(Communicator& world, std::span<float> data, CommDtype dtype) {
  TRY(world.barrier());
  const auto begin = Clock::now();
  TRY(world.allreduce_start(data, dtype));
  TRY(world.wait_all());
  const double own = microseconds(Clock::now() - begin);
  std::vector<double> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  return *std::max_element(all.begin(), all.end());
}

Result<void> measure(Communicator& world, CommDtype dtype, std::size_t bytes) {
  std::vector<float> data(bytes / sizeof(float), 1.0F);
  std::vector<double> times;
  for (int i = 0; i < 41; ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(world.rank() + 1));
    times.push_back(TRY(once(world, data, dtype)));
    const auto expected = static_cast<float>(world.size() * (world.size() + 1)) / 2;
    if (!std::all_of(data.begin(), data.end(), [&](float x) { return x == expected; }))
      return fail(ErrorKind::internal, "wrong sum of {} bytes", bytes);
  }
  std::nth_element(times.begin(), times.begin() + 20, times.end());
  if (world.rank() == 0)
    std::printf("%10zu bytes %10.1f us %6.2f GB/s\n", bytes, times[20],
                static_cast<double>(bytes) / times[20] / 1e3);
  return {};
}

Result<CommDtype> dtype_of(std::string_view name) {
  for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16, CommDtype::f16})
    if (name == name_of(dtype)) return dtype;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("unknown dtype '{}'", name),
                    .hint = "valid values: f32, bf16, f16"});
}

Result<void> run(std::string_view dtype_name) {
  const CommDtype dtype = TRY(dtype_of(dtype_name));
  const auto begin = Clock::now();
  const auto world = TRY(make_communicator(Environment::of_this_process()));
  if (world->rank() == 0)
    std::printf("%s, %d ranks, %s, up in %.1f ms\n", world->description().c_str(), world->size(),
                name_of(dtype).data(), microseconds(Clock::now() - begin) / 1e3);
  for (std::size_t bytes = 4096; bytes <= (64U << 20); bytes *= 4) TRY(measure(*world, dtype, bytes));
  TRY(measure(*world, dtype, 13U << 20));
  return world->finish();
}

}  // namespace

}  // namespace dlrun::runtime

int main(int argc, char** argv) {
  const auto result = dlrun::runtime::run(argc > 1 ? argv[1] : "f32");
  if (result) return 0;
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  return dlrun::to_int(dlrun::exit_code(result.error().kind));
}
