// See resume.hpp.
#include "runtime/train/resume.hpp"

#include "runtime/checkpoint/snapshot.hpp"

namespace dlrun::runtime {
namespace {

struct Announcement {
  std::uint64_t found = 0, has_sums = 0;
  Position position;
  EpochSums sums{};
  std::array<std::uint64_t, 2> bytes{};
};

Error in_checkpoint(Error error, const std::string& name) {
  error.where = error.where.empty() ? name : name + "/" + error.where;
  return error;
}

Result<TensorReader> open_checkpoint(const std::filesystem::path& folder, std::uint64_t step) {
  const auto files = real_file_system();
  const std::string name = checkpoint_name(step);
  return TensorReader::open(folder / name, TRY(read_manifest(*files, folder, {name, step})));
}

// This rank's part, as it is named by its step.
Result<void> restore_part(Engine& engine, const std::filesystem::path& folder, std::uint64_t step) {
  auto restored = [&]() -> Result<void> { return restore(engine, TRY(open_checkpoint(folder, step))); }();
  if (restored) return restored;
  return fail(in_checkpoint(std::move(restored).error(), (folder / checkpoint_name(step)).string()));
}

}  // namespace

Result<Resumed> resume(Engine& engine, Communicator& comm, LoadedCheckpoint* chosen,
                       const std::filesystem::path& folder) {
  Announcement news;
  const bool in_parts = engine.state_part_bytes() || engine.staged() != nullptr || is_divided(engine);
  if (chosen != nullptr && chosen->manifest.parts != 0 && !in_parts)
    chosen->files = TRY(whole_files(engine, TRY(open_checkpoint(folder, chosen->manifest.position.step))));
  if (chosen != nullptr) {
    const Manifest& manifest = chosen->manifest;
    news = {.found = 1,
            .has_sums = manifest.epoch_sums ? 1U : 0U,
            .position = manifest.position,
            .sums = manifest.epoch_sums.value_or(EpochSums{}),
            .bytes = {chosen->files[0].size(), chosen->files[1].size()}};
  }
  TRY(comm.broadcast(std::as_writable_bytes(std::span(&news, 1)), 0));
  if (news.found == 0) return Resumed{};
  const Resumed out{news.position, news.has_sums != 0 ? std::optional(news.sums) : std::nullopt,
                    Resumed::From::checkpoint};
  if (in_parts) {
    TRY(restore_part(engine, folder, news.position.step));
    return out;
  }
  std::array<HugeBuffer, 2> received;
  std::array<std::span<const std::byte>, 2> files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (chosen == nullptr) received[i] = TRY(HugeBuffer::make(news.bytes[i]));
    const std::span<std::byte> content = chosen != nullptr ? chosen->files[i].bytes() : received[i].bytes();
    TRY(comm.broadcast(content, 0));
    files[i] = content;
  }
  auto restored = restore(engine, files);
  if (!restored && chosen != nullptr) return fail(in_checkpoint(std::move(restored).error(), chosen->name));
  TRY(std::move(restored));
  return out;
}

}  // namespace dlrun::runtime
