// See writer.hpp.
#include "runtime/checkpoint/writer.hpp"

#include <unistd.h>

#include "runtime/base/checksum.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view unfinished_prefix = ".writing-";
constexpr std::string_view removed_prefix = ".removing-";

Result<void> write_file(FileSystem& files, const std::filesystem::path& path,
                        std::span<const std::byte> content) {
  const auto file = TRY(files.create(path));
  TRY(file->write(content));
  TRY(file->sync());
  return file->close();
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<std::vector<ManifestFile>> write_state(FileSystem& files, const std::filesystem::path& folder,
                                              const CheckpointPart& part,
                                              const std::array<std::span<const std::byte>, 2>& state) {
  TRY(files.make_directories(folder));
  const std::array<std::string, 2> names = state_files_of(part);
  std::vector<ManifestFile> out;
  for (std::size_t i = 0; i < state.size(); ++i) {
    TRY(write_file(files, folder / names[i], state[i]));
    out.push_back({.name = names[i], .bytes = state[i].size(), .checksum = checksum(state[i])});
  }
  return out;
}

// What comes last.
Result<void> write_manifest(FileSystem& files, const std::filesystem::path& folder, Manifest& manifest) {
  if (!manifest.tokenizer.empty()) {
    TRY(write_file(files, folder / tokenizer_file_name, as_bytes(manifest.tokenizer)));
    manifest.tokenizer_checksum = checksum(manifest.tokenizer);
  }
  TRY(write_file(files, folder / manifest_name, as_bytes(to_text(manifest))));
  return files.sync_directory(folder);
}

// Moves a folder out of the way first, so that a half-removed checkpoint never looks like a damaged one.
Result<void> remove_checkpoint(FileSystem& files, const std::filesystem::path& folder,
                               const std::string& name) {
  const std::filesystem::path aside = folder / (std::string(removed_prefix) + name);
  TRY(files.remove_all(aside));
  TRY(files.rename(folder / name, aside));
  return files.remove_all(aside);
}

Result<void> publish(FileSystem& files, const std::filesystem::path& folder,
                     const std::filesystem::path& unfinished, const std::string& name) {
  // One of the same name is there only where it was refused as damaged or foreign: it gives way.
  if (files.exists(folder / name)) TRY(remove_checkpoint(files, folder, name));
  TRY(files.rename(unfinished, folder / name));
  return files.sync_directory(folder);
}

std::filesystem::path unfinished_folder(const std::filesystem::path& folder, std::uint64_t step) {
  return folder / fmt::format("{}{}", unfinished_prefix, checkpoint_name(step));
}

// What an attempt came to; where it failed, nothing of it is left.
Result<void> or_remove(FileSystem& files, Result<void> attempt, const std::filesystem::path& unfinished,
                       std::uint64_t step) {
  if (attempt) return attempt;
  Error error = std::move(attempt).error();
  error.what = fmt::format("checkpoint of step {} was not written: {}", step, error.what);
  if (auto removed = files.remove_all(unfinished); !removed) error.also.push_back(removed.error().text());
  return fail(std::move(error));
}

}  // namespace

Result<void> write_checkpoint(FileSystem& files, const std::filesystem::path& folder, Manifest manifest,
                              const std::array<std::span<const std::byte>, 2>& state) {
  const std::uint64_t step = manifest.position.step;
  const std::filesystem::path unfinished = unfinished_folder(folder, step);
  const auto attempt = [&]() -> Result<void> {
    TRY(files.remove_all(unfinished));
    manifest.files = TRY(write_state(files, unfinished, {}, state));
    TRY(write_manifest(files, unfinished, manifest));
    return publish(files, folder, unfinished, checkpoint_name(step));
  };
  return or_remove(files, attempt(), unfinished, step);
}

Result<std::vector<ManifestFile>> write_part(FileSystem& files, const std::filesystem::path& folder,
                                             std::uint64_t step, const CheckpointPart& part,
                                             const std::array<std::span<const std::byte>, 2>& state) {
  auto written = write_state(files, unfinished_folder(folder, step), part, state);
  if (written) return written;
  Error error = std::move(written).error();
  error.what = fmt::format("part {} of {} of the checkpoint of step {} was not written: {}", part.part + 1,
                           part.parts, step, error.what);
  for (const std::string& name : state_files_of(part))
    if (auto removed = files.remove_all(unfinished_folder(folder, step) / name); !removed)
      error.also.push_back(removed.error().text());
  return fail(std::move(error));
}

// A file that another rank has synced is on the disk, and its name too once the folder is.
Result<void> commit_parts(FileSystem& files, const std::filesystem::path& folder, Manifest manifest) {
  const std::uint64_t step = manifest.position.step;
  const std::filesystem::path unfinished = unfinished_folder(folder, step);
  const auto attempt = [&]() -> Result<void> {
    for (const ManifestFile& file : manifest.files) {
      const std::uint64_t have = TRY(files.size(unfinished / file.name));
      if (have != file.bytes)
        return fail(ErrorKind::io, "{} has {} bytes, and its rank has written {}",
                    (unfinished / file.name).string(), have, file.bytes);
    }
    TRY(write_manifest(files, unfinished, manifest));
    return publish(files, folder, unfinished, checkpoint_name(step));
  };
  return or_remove(files, attempt(), unfinished, step);
}

Result<void> prune_checkpoints(FileSystem& files, const CheckpointPlace& place, const Identity& identity) {
  int sound = 0;
  for (const CatalogEntry& entry : TRY(list_checkpoints(files, place.folder))) {
    const auto manifest = read_manifest(files, place.folder, entry);
    if (!manifest || !difference(manifest->identity, identity).empty()) continue;
    if (++sound > place.keep) TRY(remove_checkpoint(files, place.folder, entry.name));
  }
  return {};
}

Result<std::vector<std::string>> remove_leftovers(FileSystem& files, const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const std::string& name : TRY(files.list(folder))) {
    if (!name.starts_with(unfinished_prefix) && !name.starts_with(removed_prefix)) continue;
    TRY(files.remove_all(folder / name));
    out.push_back(name);
  }
  return out;
}

Result<void> check_writable(FileSystem& files, const std::filesystem::path& folder) {
  TRY(files.make_directories(folder));
  const std::filesystem::path probe = folder / fmt::format("{}probe-{}", unfinished_prefix, ::getpid());
  TRY(files.remove_all(probe));
  auto written = write_file(files, probe, as_bytes("dlrun\n"));
  TRY(files.remove_all(probe));
  return written;
}

bool BackgroundWriter::busy() const {
  return running_.valid() && running_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

Result<void> BackgroundWriter::start(const Engine& engine, Manifest manifest) {
  TRY(snapshot_.take(engine));
  running_ =
      std::async(std::launch::async, [this, manifest = std::move(manifest)] { return write(manifest); });
  return {};
}

Result<Saved> BackgroundWriter::write(const Manifest& manifest) {
  const auto begin = std::chrono::steady_clock::now();
  if (may_write_) TRY(may_write_());
  TRY(write_checkpoint(files_, place_.folder, manifest, {snapshot_.file(0), snapshot_.file(1)}));
  TRY(prune_checkpoints(files_, place_, manifest.identity));
  return Saved{
      .step = manifest.position.step, .began = begin, .took = std::chrono::steady_clock::now() - begin};
}

Result<std::optional<Saved>> BackgroundWriter::poll() {
  if (!running_.valid() || busy()) return std::optional<Saved>();
  return std::optional<Saved>(TRY(running_.get()));
}

Result<std::optional<Saved>> BackgroundWriter::wait() {
  if (!running_.valid()) return std::optional<Saved>();
  return std::optional<Saved>(TRY(running_.get()));
}

}  // namespace dlrun::runtime
