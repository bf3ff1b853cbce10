// See catalog.hpp.
#include "runtime/checkpoint/catalog.hpp"

#include <algorithm>

#include "runtime/base/checksum.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view prefix = "step-";
constexpr std::uint64_t longest_manifest = 16u << 20;

tl::unexpected<Error> damaged_checkpoint(std::string what) {
  return fail(Error{.kind = ErrorKind::input, .what = std::move(what)});
}

std::optional<std::uint64_t> step_of(std::string_view name) {
  const std::string_view digits = name.substr(prefix.size());
  const bool all_digits =
      !digits.empty() && digits.size() <= 18 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!all_digits) return std::nullopt;
  return std::stoull(std::string(digits));
}

Result<LoadedCheckpoint> load(FileSystem& files, const std::filesystem::path& folder,
                              const CatalogEntry& entry, Manifest manifest) {
  LoadedCheckpoint out{.name = entry.name, .manifest = std::move(manifest), .files = {}};
  if (out.manifest.parts != 0) {
    const TensorReader reader = TRY(TensorReader::open(folder / entry.name, out.manifest));
    TRY(reader.verify());
    return out;
  }
  for (std::size_t i = 0; i < state_file_names.size(); ++i) {
    const ManifestFile& promised = out.manifest.files[i];
    out.files[i] = TRY(files.read(folder / entry.name / promised.name, promised.bytes));
    const std::uint64_t have = checksum(out.files[i].bytes());
    if (have != promised.checksum)
      return damaged_checkpoint(fmt::format("{}: checksum {}, but {} in the manifest", promised.name,
                                            hex(have), hex(promised.checksum)));
  }
  return out;
}

}  // namespace

std::string checkpoint_name(std::uint64_t step) {
  return fmt::format("{}{:08}", prefix, step);
}

Result<std::vector<CatalogEntry>> list_checkpoints(FileSystem& files, const std::filesystem::path& folder,
                                                   std::vector<std::string>* others) {
  std::vector<CatalogEntry> out;
  for (std::string& name : TRY(files.list(folder))) {
    if (!name.starts_with(prefix)) continue;
    if (const auto step = step_of(name))
      out.push_back({.name = std::move(name), .step = *step});
    else if (others != nullptr)
      others->push_back(std::move(name));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return out;
}

Result<Manifest> read_manifest(FileSystem& files, const std::filesystem::path& folder,
                               const CatalogEntry& entry) {
  const std::filesystem::path place = folder / entry.name;
  if (!files.exists(place / manifest_name))
    return damaged_checkpoint(fmt::format("{} is missing", manifest_name));
  const HugeBuffer text = TRY(files.read(place / manifest_name, longest_manifest));
  if (text.size() == 0) return damaged_checkpoint(fmt::format("{} is empty", manifest_name));
  Manifest manifest = TRY(
      parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()}, std::string(manifest_name)));
  if (manifest.position.step != entry.step)
    return damaged_checkpoint(fmt::format("{} is of step {}", manifest_name, manifest.position.step));
  const auto parts = static_cast<std::size_t>(std::max(manifest.parts, 1));
  if (manifest.files.size() != parts * state_file_names.size())
    return damaged_checkpoint(manifest.parts == 0 ? std::string("its manifest does not list two files")
                                                  : fmt::format("its manifest lists {} files of {} parts",
                                                                manifest.files.size(), manifest.parts));
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const ManifestFile& file = manifest.files[i];
    if (file.name != state_files_of({static_cast<int>(i / 2), manifest.parts})[i % 2])
      return damaged_checkpoint(fmt::format("its manifest lists a file '{}'", file.name));
    if (!files.exists(place / file.name)) return damaged_checkpoint(fmt::format("{} is missing", file.name));
    const std::uint64_t have = TRY(files.size(place / file.name));
    if (have != file.bytes)
      return damaged_checkpoint(
          fmt::format("{} has {} bytes, but {} in the manifest", file.name, have, file.bytes));
  }
  return manifest;
}

Result<Choice> choose_checkpoint(FileSystem& files, const std::filesystem::path& folder,
                                 const Identity& identity) {
  Choice out;
  std::vector<std::string> others;
  const std::vector<CatalogEntry> entries = TRY(list_checkpoints(files, folder, &others));
  for (const std::string& name : others)
    out.refused.push_back({name, RefusalKind::unfinished, "not the name of a finished checkpoint"});
  for (const CatalogEntry& entry : entries) {
    auto manifest = read_manifest(files, folder, entry);
    if (!manifest) {
      out.refused.push_back({entry.name, RefusalKind::damaged, manifest.error().text()});
      continue;
    }
    if (const std::string differs = difference(manifest->identity, identity); !differs.empty()) {
      out.refused.push_back({entry.name, RefusalKind::foreign, "of another training: " + differs});
      continue;
    }
    auto loaded = load(files, folder, entry, std::move(*manifest));
    if (loaded) {
      out.newest = std::move(*loaded);
      break;
    }
    out.refused.push_back({entry.name, RefusalKind::damaged, loaded.error().text()});
  }
  return out;
}

Result<void> check_choice(const Choice& choice, const std::filesystem::path& folder) {
  const auto stops = [](const Refusal& refusal) { return refusal.kind != RefusalKind::unfinished; };
  const auto count = std::count_if(choice.refused.begin(), choice.refused.end(), stops);
  if (choice.newest || count == 0) return {};
  const bool foreign = std::any_of(choice.refused.begin(), choice.refused.end(), [](const Refusal& refusal) {
    return refusal.kind == RefusalKind::foreign;
  });
  Error error{.kind = ErrorKind::input,
              .what = fmt::format("{} checkpoint{} here, and none can be resumed from", count,
                                  count == 1 ? " is" : "s are"),
              .where = folder.string(),
              .hint = foreign ? "set another checkpoint.dir for this training, or remove these"
                              : "to start from the beginning, remove them or set another checkpoint.dir"};
  for (const Refusal& refusal : choice.refused) error.also.push_back(refusal.name + ": " + refusal.reason);
  return fail(std::move(error));
}

}  // namespace dlrun::runtime
