// See communicator.hpp.
#include "runtime/comm/nccl/communicator.hpp"

#include <vector>

#include "runtime/comm/elastic/elastic_world.hpp"

namespace dlrun::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenChecks = std::chrono::milliseconds(5);
constexpr auto kUntilNamed = std::chrono::seconds(1);

// What rank 0 knows, to all.
Result<std::string> broadcast_text(Communicator& world, std::string text) {
  std::uint64_t length = text.size();
  TRY(world.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0));
  text.resize(length);
  TRY(world.broadcast(std::as_writable_bytes(std::span(text.data(), text.size())), 0));
  return text;
}

// What a rank that could not tells the others. Who lost a peer may try again with those that are left.
enum class Outcome : char { done, lost, failed };
template <class T>
Outcome outcome_of(const Result<T>& mine) {
  if (mine) return Outcome::done;
  return mine.error().kind == ErrorKind::lost ? Outcome::lost : Outcome::failed;
}

// The same kind of Error on all ranks where one of them could not.
template <class T>
Result<T> agree(Communicator& world, Result<T> mine) {
  const Outcome own = outcome_of(mine);
  std::vector<Outcome> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  if (!mine) return mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != Outcome::done)
      return fail(Error{.kind = all[rank] == Outcome::lost ? ErrorKind::lost : ErrorKind::unavailable,
                        .what = fmt::format("rank {} cannot use NCCL; its log says why", rank)});
  return mine;
}

// The first rank of each group makes one.
Result<NcclId> common_id(Communicator& parent, Communicator& group, const NcclLibrary& library) {
  NcclId id = TRY(agree(parent, group.rank() == 0 ? library.new_id() : Result<NcclId>(NcclId{})));
  TRY(group.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0));
  return id;
}

}  // namespace

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::connect(Communicator& world, Communicator& group,
                                                                    const std::filesystem::path& library) {
  NcclLibrary nccl = TRY(agree(world, NcclLibrary::open(library)));
  PeerLinks links = TRY(agree(world, PeerLinks::connect(world.rank(), world.size(), [&](std::string mine) {
                                return broadcast_text(world, std::move(mine));
                              })));
  return join(world, group, std::make_shared<Shared>(Shared{std::move(nccl), std::move(links)}));
}

// The first two ranks wait in NCCL: where one is lost, nothing is trained yet that the other could go on
// with.
NcclCommunicator::Waits NcclCommunicator::waits_of(const NcclLibrary& library, Communicator& group) {
  const ElasticWorld* const world = group.elastic();
  if (world == nullptr || !library.can_connect_without_waiting()) return Waits::in_call;
  return group.size() > 2 || world->generation() > 0 ? Waits::outside : Waits::in_call;
}

// Until all have met, or one is lost on the way.
Result<NcclLibrary::Comm> NcclCommunicator::connect_watched(Shared& shared, const NcclId& id,
                                                            Communicator& group) {
  const NcclLibrary::Comm comm = TRY(shared.library.begin_to_connect(id, group.rank(), group.size()));
  for (;; std::this_thread::sleep_for(kBetweenChecks)) {
    auto progress = shared.library.progress(comm);
    if (progress && *progress == NcclLibrary::Progress::done) return comm;
    auto lost = progress ? lost_rank(shared, group) : named(shared, group);
    if (progress && !lost) continue;
    shared.library.abort(comm);
    return fail(lost ? std::move(*lost) : progress.error());
  }
}

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::join(Communicator& parent, Communicator& group,
                                                                 std::shared_ptr<Shared> shared) {
  const NcclId id = TRY(common_id(parent, group, shared->library));
  const Waits waits = waits_of(shared->library, group);
  const auto mine = waits == Waits::outside ? connect_watched(*shared, id, group)
                                            : shared->library.connect(id, group.rank(), group.size());
  if (!mine && waits == Waits::outside) shared->links.close();  // who waits in NCCL for this rank is told
  auto agreed = agree(parent, mine);
  if (!agreed && mine) shared->library.abort(*mine);  // another rank could not
  const NcclLibrary::Comm comm = TRY(std::move(agreed));
  return std::unique_ptr<NcclCommunicator>(new NcclCommunicator(std::move(shared), comm, group, waits));
}

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::split(int color, int key) {
  TRY(state());
  std::unique_ptr<Communicator> group = TRY(hosts_->split(color, key));
  auto out = TRY(join(*hosts_, *group, shared_));
  out->group_ = std::move(group);
  return out;
}

// Where ranks may be lost, nothing may wait for one of them.
NcclCommunicator::~NcclCommunicator() {
  if (ending_.joinable())
    ending_.join();
  else if (hosts_->elastic() != nullptr)
    nccl().abort(comm_);
  else
    nccl().destroy(comm_);
}

Result<void> NcclCommunicator::allreduce(void* data, std::size_t count, DeviceNumber type, void* stream) {
  TRY(state());
  return complete(nccl().allreduce(data, count, type, comm_, stream));
}

Result<void> NcclCommunicator::reduce(float* data, std::size_t count, int root, void* stream) {
  TRY(state());
  return complete(nccl().reduce(data, count, root, comm_, stream));
}

// NCCL's own collectives want parts of one length.
Result<void> NcclCommunicator::reduce_scatter(float* data, std::span<const std::size_t> borders,
                                              void* stream) {
  return together([&]() -> Result<void> {
    for (std::size_t part = 0; part + 1 < borders.size(); ++part)
      if (const std::size_t count = borders[part + 1] - borders[part]; count > 0)
        TRY(reduce(data + borders[part], count, static_cast<int>(part), stream));
    return {};
  });
}

Result<void> NcclCommunicator::allgather(float* data, std::span<const std::size_t> borders, void* stream) {
  return together([&]() -> Result<void> {
    for (std::size_t part = 0; part + 1 < borders.size(); ++part)
      if (const std::size_t count = borders[part + 1] - borders[part]; count > 0)
        TRY(broadcast(data + borders[part], count * sizeof(float), static_cast<int>(part), stream));
    return {};
  });
}

Result<void> NcclCommunicator::reduce_scatter(const void* data, void* mine, std::size_t count,
                                              DeviceNumber type, void* stream) {
  TRY(state());
  return complete(nccl().reduce_scatter(data, mine, count, type, comm_, stream));
}

Result<void> NcclCommunicator::allgather(const void* mine, void* all, std::size_t bytes, void* stream) {
  TRY(state());
  return complete(nccl().allgather(mine, all, bytes, comm_, stream));
}

Result<void> NcclCommunicator::broadcast(void* data, std::size_t bytes, int root, void* stream) {
  TRY(state());
  return complete(nccl().broadcast(data, bytes, root, comm_, stream));
}

Result<void> NcclCommunicator::send(const void* data, std::size_t bytes, int to, void* stream) {
  TRY(state());
  return complete(nccl().send(data, bytes, to, comm_, stream));
}

Result<void> NcclCommunicator::receive(void* data, std::size_t bytes, int from, void* stream) {
  TRY(state());
  return complete(nccl().receive(data, bytes, from, comm_, stream));
}

Result<void> NcclCommunicator::state() const {
  if (failure_) return fail(*failure_);
  return {};
}

std::optional<Error> NcclCommunicator::gone_peer(Shared& shared) {
  const auto name = shared.links.gone();
  if (!name) return std::nullopt;
  return Error{.kind = ErrorKind::lost,
               .what = fmt::format("{} is gone: its connection was closed", *name),
               .hint = "its log says why; the next run resumes from the last checkpoint"};
}

std::optional<Error> NcclCommunicator::lost_rank(Shared& shared, Communicator& hosts) {
  if (auto error = gone_peer(shared)) return error;
  if (hosts.elastic() == nullptr || !hosts.elastic()->is_lost()) return std::nullopt;
  return Error{.kind = ErrorKind::lost, .what = "the launcher has lost a rank"};
}

// What was asked is done when this returns, or nobody waits for it any more. NCCL may notice first that a
// peer is gone, and cannot name it.
Result<void> NcclCommunicator::complete(Result<void> asked) {
  if (!asked && groups_open_ == 0) return give_up_for(std::move(asked).error());
  if (waits_ == Waits::in_call || !asked) return asked;
  for (;;) {
    const auto progress = nccl().progress(comm_);
    if (!progress) return give_up_for(progress.error());
    if (*progress == NcclLibrary::Progress::done) return {};
    if (auto error = lost_rank(*shared_, *hosts_)) return give_up(std::move(*error));
    std::this_thread::yield();
  }
}

Result<void> NcclCommunicator::check() {
  TRY(state());
  if (Clock::now() - checked_ < kBetweenChecks) return {};
  checked_ = Clock::now();
  if (auto error = lost_rank(*shared_, *hosts_)) return give_up(std::move(*error));
  if (auto well = nccl().check(comm_); !well) return give_up_for(std::move(well).error());
  return {};
}

std::optional<Error> NcclCommunicator::named(Shared& shared, Communicator& group) {
  for (const auto end = Clock::now() + kUntilNamed; Clock::now() < end;
       std::this_thread::sleep_for(kBetweenChecks))
    if (auto error = lost_rank(shared, group)) return error;
  return std::nullopt;
}

Result<void> NcclCommunicator::give_up_for(Error found) {
  TRY(state());
  auto error = named(*shared_, *hosts_);
  return give_up(error ? std::move(*error) : std::move(found));
}

// The abort ends what runs on the device first, then waits for graphs that hold the communicator: those are
// their owner's to destroy, so it must not hold us.
Result<void> NcclCommunicator::give_up(Error error) {
  failure_ = std::move(error);
  ending_ = std::thread([this] { nccl().abort(comm_); });
  return state();
}

}  // namespace dlrun::runtime
