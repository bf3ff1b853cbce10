// See sharded.hpp.
#include "runtime/data/images/sharded.hpp"

#include "runtime/base/checksum.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSchema = "dlrun.samples/1";
constexpr const char* kAbout = "samples.json";
constexpr std::size_t kEntryBytes = 26;
constexpr std::uint32_t kMaxShards = 1 << 20;

tl::unexpected<Error> bad_shards(const fs::path& where, std::string what) {
  return bad_input(where.string(), std::move(what), "prepare them again: dlrun-train --prepare --as shards");
}

void append(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

class EntryReader {
 public:
  explicit EntryReader(std::string_view rest) : rest_(rest) {}
  std::uint64_t take(std::size_t bytes) {
    std::uint64_t out = 0;
    for (std::size_t i = bytes; i-- > 0;) out = out << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return out;
  }

 private:
  std::string_view rest_;
};

std::string index_text(const std::vector<ShardEntry>& entries) {
  std::string out;
  for (const ShardEntry& entry : entries) {
    append(out, entry.shard, 4);
    append(out, entry.length, 4);
    append(out, entry.offset, 8);
    append(out, entry.checksum, 8);
    append(out, entry.label, 2);
  }
  return out;
}

Result<Json> read_about(const fs::path& folder) {
  const fs::path path = folder / kAbout;
  Json about = TRY(parse_json(TRY(read_regular_file(path)), path.string()));
  if (TRY(field<std::string>(about, "schema", path.string())) != kSchema)
    return bad_shards(path, fmt::format("is not of schema {}", kSchema));
  return about;
}

Result<std::vector<std::string>> classes_of(const Json& about, const fs::path& folder) {
  const std::string where = (folder / kAbout).string();
  auto classes = TRY(field<std::vector<std::string>>(about, "classes", where));
  if (classes.size() < 2 || classes.size() > kMaxClasses)
    return bad_shards(where, fmt::format("has {} classes", classes.size()));
  return classes;
}

Result<Dataset> load_part(const ImageSpec& spec, const Json& about, const std::string& part,
                          std::int64_t classes) {
  const fs::path path = spec.directory / (part + ".index");
  const std::string text = TRY(read_regular_file(path));
  if (hex(checksum(std::string_view(text))) !=
      TRY(field<std::string>(about, part + "_index", (spec.directory / kAbout).string())))
    return bad_shards(path, "does not match its checksum");
  if (text.size() % kEntryBytes != 0) return bad_shards(path, fmt::format("has {} bytes", text.size()));
  Dataset out;
  out.shape = {.channels = spec.channels, .height = spec.height, .width = spec.width, .classes = classes};
  out.damaged = spec.damaged;
  out.count = text.size() / kEntryBytes;
  const auto encoded = std::make_shared<EncodedSamples>();
  std::uint32_t shards = 0;
  for (std::size_t at = 0; at < text.size(); at += kEntryBytes) {
    EntryReader entry(std::string_view(text).substr(at, kEntryBytes));
    Extent extent{.file = static_cast<std::uint32_t>(entry.take(4)),
                  .length = static_cast<std::uint32_t>(entry.take(4)),
                  .offset = entry.take(8)};
    encoded->checksums.push_back(entry.take(8));
    out.labels.push_back(static_cast<std::uint16_t>(entry.take(2)));
    if (extent.file >= kMaxShards || extent.length == Extent::kWholeFile || out.labels.back() >= classes)
      return bad_shards(path, fmt::format("the entry at offset {} is out of range", at));
    encoded->extents.push_back(extent);
    shards = std::max(shards, extent.file + 1);
  }
  std::vector<fs::path> paths;
  for (std::uint32_t i = 0; i < shards; ++i) paths.push_back(encoded_shard_path(spec.directory, part, i));
  encoded->files = TRY(FileSet::open(std::move(paths)));
  out.encoded = encoded;
  return out;
}

}  // namespace

fs::path encoded_shard_path(const fs::path& folder, const std::string& part, std::size_t shard) {
  return folder / fmt::format("{}-{:05}.bin", part, shard);
}

bool is_sharded(const fs::path& folder) {
  std::error_code problem;
  return fs::is_regular_file(folder / kAbout, problem);
}

Result<InputShape> probe_sharded(const ImageSpec& spec) {
  const auto classes = TRY(classes_of(TRY(read_about(spec.directory)), spec.directory));
  return InputShape{.channels = spec.channels,
                    .height = spec.height,
                    .width = spec.width,
                    .classes = static_cast<std::int64_t>(classes.size())};
}

Result<DataParts> load_sharded(const ImageSpec& spec) {
  const Json about = TRY(read_about(spec.directory));
  DataParts out;
  out.classes = TRY(classes_of(about, spec.directory));
  const auto classes = static_cast<std::int64_t>(out.classes.size());
  out.train = TRY(load_part(spec, about, "train", classes));
  out.test = TRY(load_part(spec, about, "test", classes));
  if (out.train.count == 0) return bad_shards(spec.directory, "there are no training images");
  if (out.test.count == 0 && spec.train_share == 1)
    return bad_input(spec.directory.string(), "there are no test images",
                     "set a validation split with train: 0.9");
  return out;
}

Result<void> write_shard_index(const fs::path& folder, const std::vector<std::string>& classes,
                               const std::vector<ShardEntry>& train, const std::vector<ShardEntry>& test) {
  Json about{{"schema", kSchema}, {"classes", classes}};
  const auto add = [&](const std::string& part, const std::vector<ShardEntry>& entries) {
    const std::string text = index_text(entries);
    about[part + "_index"] = hex(checksum(std::string_view(text)));
    about[part] = entries.size();
    return replace_file(folder / (part + ".index"), text, Durability::synced);
  };
  TRY(add("train", train));
  TRY(add("test", test));
  return replace_file(folder / kAbout, to_pretty_text(about), Durability::synced);
}

}  // namespace dlrun::runtime
