// See resume.hpp.
#include "runtime/train/resume.hpp"

#include "runtime/checkpoint/snapshot.hpp"

namespace dlrun::runtime {
namespace {

struct Announcement {
  std::uint64_t found = 0;
  Position position;
  std::array<std::uint64_t, 2> bytes{};
};

}  // namespace

Result<Position> resume(Engine& engine, Communicator& comm, const LoadedCheckpoint* chosen) {
  Announcement news;
  if (chosen != nullptr)
    news = {1, chosen->manifest.position, {chosen->files[0].size(), chosen->files[1].size()}};
  TRY(comm.broadcast(std::as_writable_bytes(std::span(&news, 1)), 0));
  if (news.found == 0) return Position{};
  std::array<HugeBuffer, 2> received;
  std::array<std::span<const std::byte>, 2> files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (chosen == nullptr) received[i] = TRY(HugeBuffer::make(news.bytes[i]));
    const std::span<std::byte> content = chosen != nullptr ? chosen->files[i].bytes() : received[i].bytes();
    TRY(comm.broadcast(content, 0));
    files[i] = content;
  }
  auto restored = restore(engine, files);
  if (!restored && chosen != nullptr) {
    Error error = std::move(restored).error();
    error.where = chosen->name + "/" + error.where;
    return fail(std::move(error));
  }
  TRY(std::move(restored));
  return news.position;
}

}  // namespace dlrun::runtime
