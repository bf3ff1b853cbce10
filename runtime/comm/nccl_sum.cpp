#include "runtime/comm/nccl_sum.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/comm/peer_links.hpp"

namespace dlrun::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);

class OverNccl final : public DeviceSum {
 public:
  OverNccl(NcclLibrary library, NcclLibrary::Comm comm, PeerLinks links)
      : library_(std::move(library)), comm_(comm), links_(std::move(links)) {}
  ~OverNccl() override {
    if (ending_.joinable())
      ending_.join();
    else
      library_.destroy(comm_);
  }

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    if (failure_) return fail(*failure_);
    return library_.sum_floats(data, count, comm_, stream);
  }

  Result<void> check() override {
    if (failure_) return fail(*failure_);
    if (Clock::now() - looked_ < kBetweenLooks) return {};
    looked_ = Clock::now();
    if (const auto name = links_.gone())
      return give_up(Error{.kind = ErrorKind::lost,
                           .what = fmt::format("{} is gone: its connection was closed", *name),
                           .hint = "its own log says why; the training carries on from its last checkpoint"});
    if (auto well = library_.check(comm_); !well) return give_up(std::move(well).error());
    return {};
  }

 private:
  // The abort ends what runs on the device first, then waits for graphs that hold the communicator: those are
  // ours to destroy, so it must not hold us.
  Result<void> give_up(Error error) {
    failure_ = std::move(error);
    ending_ = std::thread([this] { library_.abort(comm_); });
    return fail(*failure_);
  }

  NcclLibrary library_;
  NcclLibrary::Comm comm_;
  PeerLinks links_;
  Clock::time_point looked_;
  std::optional<Error> failure_;
  std::thread ending_;
};

// What rank 0 knows, to all.
Result<std::string> broadcast_text(Communicator& world, std::string text) {
  std::uint64_t length = text.size();
  TRY(world.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0));
  text.resize(length);
  TRY(world.broadcast(std::as_writable_bytes(std::span(text.data(), text.size())), 0));
  return text;
}

// The same Error on all ranks where one of them could not.
Result<void> agree(Communicator& world, const Result<void>& mine) {
  const char own = mine ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  if (!mine) return mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] == 0)
      return fail(Error{.kind = ErrorKind::unavailable,
                        .what = fmt::format("rank {} cannot use NCCL; its log says why", rank)});
  return {};
}

}  // namespace

Result<NcclSum> make_nccl_sum(Communicator& world, const std::filesystem::path& library) {
  auto loaded = NcclLibrary::open(library);
  TRY(agree(world, loaded ? Result<void>() : Result<void>(tl::unexpected(loaded.error()))));
  auto links = PeerLinks::connect(world.rank(), world.size(),
                                  [&](std::string mine) { return broadcast_text(world, std::move(mine)); });
  TRY(agree(world, links ? Result<void>() : Result<void>(tl::unexpected(links.error()))));
  Result<NcclId> id = world.rank() == 0 ? loaded->new_id() : NcclId{};
  TRY(agree(world, id ? Result<void>() : Result<void>(tl::unexpected(id.error()))));
  TRY(world.broadcast(std::as_writable_bytes(std::span(id->bytes)), 0));
  auto comm = loaded->connect(*id, world.rank(), world.size());
  TRY(agree(world, comm ? Result<void>() : Result<void>(tl::unexpected(comm.error()))));
  const std::string description = "NCCL " + loaded->version();
  return NcclSum{std::make_unique<OverNccl>(std::move(*loaded), *comm, std::move(*links)), description};
}

}  // namespace dlrun::runtime
