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

Result<void> fill_folder(FileSystem& files, const std::filesystem::path& folder, Manifest& manifest,
                         const std::array<std::span<const std::byte>, 2>& state) {
  TRY(files.make_directories(folder));
  manifest.files.clear();
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::string name(state_file_names[i]);
    TRY(write_file(files, folder / name, state[i]));
    manifest.files.push_back({.name = name, .bytes = state[i].size(), .checksum = checksum(state[i])});
  }
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

}  // namespace

Result<void> write_checkpoint(FileSystem& files, const std::filesystem::path& folder, Manifest manifest,
                              const std::array<std::span<const std::byte>, 2>& state) {
  const std::string name = checkpoint_name(manifest.position.step);
  const std::filesystem::path unfinished = folder / fmt::format("{}{}", unfinished_prefix, name);
  const auto attempt = [&]() -> Result<void> {
    TRY(files.remove_all(unfinished));
    TRY(fill_folder(files, unfinished, manifest, state));
    return publish(files, folder, unfinished, name);
  };
  auto written = attempt();
  if (written) return written;
  Error error = std::move(written).error();
  error.what = fmt::format("checkpoint of step {} was not written: {}", manifest.position.step, error.what);
  if (auto removed = files.remove_all(unfinished); !removed) error.also.push_back(removed.error().text());
  return fail(std::move(error));
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
