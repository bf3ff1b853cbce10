// See nccl_ranks.hpp.
#include "runtime/comm/nccl/ranks.hpp"

#include <vector>

namespace dlrun::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
constexpr auto kUntilNamed = std::chrono::seconds(1);

// What rank 0 knows, to all.
Result<std::string> broadcast_text(Communicator& world, std::string text) {
  std::uint64_t length = text.size();
  TRY(world.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0));
  text.resize(length);
  TRY(world.broadcast(std::as_writable_bytes(std::span(text.data(), text.size())), 0));
  return text;
}

// The same Error on all ranks where one of them could not.
template <class T>
Result<T> agree(Communicator& world, Result<T> mine) {
  const char own = mine ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  if (!mine) return mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] == 0)
      return fail(Error{.kind = ErrorKind::unavailable,
                        .what = fmt::format("rank {} cannot use NCCL; its log says why", rank)});
  return mine;
}

// Of the first of the members, who alone makes one.
Result<NcclId> common_id(Communicator& world, std::span<const int> members, const NcclLibrary& library) {
  const bool first = members.front() == world.rank();
  const NcclId own = TRY(agree(world, first ? library.new_id() : Result<NcclId>(NcclId{})));
  std::vector<NcclId> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  return all[static_cast<std::size_t>(members.front())];
}

}  // namespace

Result<std::unique_ptr<NcclRanks>> NcclRanks::connect(Communicator& world, std::span<const int> members,
                                                      const std::filesystem::path& library) {
  NcclLibrary nccl = TRY(agree(world, NcclLibrary::open(library)));
  PeerLinks links = TRY(agree(world, PeerLinks::connect(world.rank(), world.size(), [&](std::string mine) {
                                return broadcast_text(world, std::move(mine));
                              })));
  const NcclId id = TRY(common_id(world, members, nccl));
  const auto place = std::find(members.begin(), members.end(), world.rank()) - members.begin();
  const NcclLibrary::Comm comm =
      TRY(agree(world, nccl.connect(id, static_cast<int>(place), static_cast<int>(members.size()))));
  return std::make_unique<NcclRanks>(std::move(nccl), comm, std::move(links));
}

NcclRanks::~NcclRanks() {
  if (ending_.joinable())
    ending_.join();
  else
    library_.destroy(comm_);
}

Result<void> NcclRanks::state() const {
  if (failure_) return fail(*failure_);
  return {};
}

std::optional<Error> NcclRanks::gone_peer() {
  const auto name = links_.gone();
  if (!name) return std::nullopt;
  return Error{.kind = ErrorKind::lost,
               .what = fmt::format("{} is gone: its connection was closed", *name),
               .hint = "its own log says why; the training carries on from its last checkpoint"};
}

Result<void> NcclRanks::check() {
  TRY(state());
  if (Clock::now() - looked_ < kBetweenLooks) return {};
  looked_ = Clock::now();
  if (auto error = gone_peer()) return give_up(std::move(*error));
  if (auto well = library_.check(comm_); !well) return give_up(std::move(well).error());
  return {};
}

Result<void> NcclRanks::give_up_for(Error found) {
  TRY(state());
  for (const auto end = Clock::now() + kUntilNamed; Clock::now() < end;
       std::this_thread::sleep_for(kBetweenLooks))
    if (auto error = gone_peer()) return give_up(std::move(*error));
  return give_up(std::move(found));
}

// The abort ends what runs on the device first, then waits for graphs that hold the communicator: those are
// their owner's to destroy, so it must not hold us.
Result<void> NcclRanks::give_up(Error error) {
  failure_ = std::move(error);
  ending_ = std::thread([this] { library_.abort(comm_); });
  return state();
}

}  // namespace dlrun::runtime
