#include "runtime/data/images/packed.hpp"

#include <algorithm>
#include <thread>

#include "runtime/base/checksum.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/partial_folder.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSchema = "dlrun.images/1";
constexpr const char* kIndex = "images.json";
constexpr const char* kSumsChecksum = "pixels_checksum";

tl::unexpected<Error> bad_pack(const fs::path& where, std::string what) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = std::move(what),
                    .where = where.string(),
                    .hint = "pack the images again: dlrun-train --prepare"});
}

Result<std::int64_t> number(const Json& json, std::string_view key, std::int64_t most,
                            const std::string& where) {
  const Json value = TRY(field<Json>(json, key, where));
  if (!value.is_number_integer() || value < 0 || value > most)
    return bad_pack(where, fmt::format("field '{}' is not a number in [0, {}]", key, most));
  return value.get<std::int64_t>();
}

Result<Json> read_index(const fs::path& folder) {
  const fs::path path = folder / kIndex;
  Json index = TRY(parse_json(TRY(read_regular_file(path)), path.string()));
  if (TRY(field<std::string>(index, "schema", path.string())) != kSchema)
    return bad_pack(path, fmt::format("is not of schema {}", kSchema));
  return index;
}

Result<InputShape> packed_shape(const Json& index, const std::string& where) {
  InputShape out{.channels = 3};
  out.height = TRY(number(index, "height", 1 << 14, where));
  out.width = TRY(number(index, "width", 1 << 14, where));
  const auto classes = TRY(field<std::vector<std::string>>(index, "classes", where));
  out.classes = static_cast<std::int64_t>(classes.size());
  if (out.height == 0 || out.width == 0 || classes.size() < 2 || classes.size() > kMaxClasses)
    return bad_pack(where, "the sizes or classes are not valid");
  return out;
}

Result<std::vector<std::uint16_t>> read_packed_labels(const fs::path& path, std::uint64_t count,
                                                      std::int64_t classes, const std::string& sum) {
  const std::string text = TRY(read_regular_file(path));
  if (text.size() != 2 * count)
    return bad_pack(path, fmt::format("has {} bytes, not {}", text.size(), 2 * count));
  if (hex(checksum(std::string_view(text))) != sum)
    return bad_pack(path, "does not match the checksum of the index");
  std::vector<std::uint16_t> out(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::uint16_t>(static_cast<std::uint8_t>(text[2 * i]) |
                                        static_cast<std::uint8_t>(text[2 * i + 1]) << 8);
    if (out[i] >= classes)
      return bad_pack(path, fmt::format("label {} of image {} is out of range", out[i], i));
  }
  return out;
}

// The checksum of each sample, which has one of its own in the index. Folders of older versions have none.
Result<std::vector<std::uint64_t>> read_checksums(const fs::path& path, std::uint64_t count, const Json& part,
                                                  const std::string& where) {
  if (!part.contains(kSumsChecksum)) return std::vector<std::uint64_t>{};
  const std::string text = TRY(read_regular_file(path));
  if (text.size() != count * sizeof(std::uint64_t))
    return bad_pack(path, fmt::format("has {} bytes, not {}", text.size(), count * sizeof(std::uint64_t)));
  if (hex(checksum(std::string_view(text))) != TRY(field<std::string>(part, kSumsChecksum, where)))
    return bad_pack(path, "does not match the checksum of the index");
  std::vector<std::uint64_t> out(count, 0);
  for (std::size_t i = 0; i < text.size(); ++i)
    out[i / 8] |= std::uint64_t{static_cast<std::uint8_t>(text[i])} << (8 * (i % 8));
  return out;
}

void add_checksum(std::string& sums, std::uint64_t sum) {
  for (int i = 0; i < 8; ++i) sums.push_back(static_cast<char>(sum >> (8 * i) & 0xff));
}

fs::path shard_path(const fs::path& folder, const std::string& part, std::uint64_t shard) {
  return folder / fmt::format("{}-{:05}.bin", part, shard);
}

Result<Dataset> load_part(const fs::path& folder, const Json& index, const std::string& part) {
  const std::string where = (folder / kIndex).string();
  const Json json = TRY(field<Json>(index, part, where));
  Dataset out;
  out.shape = TRY(packed_shape(index, where));
  out.stride = out.pixels_per_sample();
  out.count = static_cast<std::uint64_t>(TRY(number(json, "count", std::int64_t{1} << 40, where)));
  out.shard_samples =
      static_cast<std::uint64_t>(TRY(number(json, "shard_samples", std::int64_t{1} << 40, where)));
  if (out.count > 0 && out.shard_samples == 0) return bad_pack(where, "shards without samples");
  for (std::uint64_t first = 0; first < out.count; first += out.shard_samples) {
    const fs::path path = shard_path(folder, part, out.shards.size());
    const std::uint64_t expected = std::min(out.shard_samples, out.count - first) * out.stride;
    out.shards.push_back(TRY(MappedFile::open(path)));
    if (out.shards.back().bytes().size() != expected)
      return bad_pack(path, fmt::format("has {} bytes, not {}", out.shards.back().bytes().size(), expected));
  }
  out.checksums = TRY(read_checksums(folder / (part + ".checksums"), out.count, json, where));
  out.labels = TRY(read_packed_labels(folder / (part + ".labels"), out.count, out.shape.classes,
                                      TRY(field<std::string>(json, "labels_checksum", where))));
  return out;
}

// One part, shard after shard, so that no more than a shard is in memory.
class PartWriter {
 public:
  PartWriter(const PackJob& job, const fs::path& folder, const InputShape& shape, std::uint64_t all)
      : job_(job), folder_(folder), shape_(shape), all_(all) {}

  Result<Json> write(const std::vector<ImageFile>& files, const std::string& part) {
    const auto stride = static_cast<std::uint64_t>(3 * shape_.height * shape_.width);
    const std::uint64_t each = std::max<std::uint64_t>(1, job_.shard_bytes / stride);
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    std::string labels, sums;
    std::vector<std::byte> kept;
    std::uint64_t count = 0, shard = 0;
    for (std::size_t at = 0; at < files.size();) {
      // Few at a time: the progress moves, and what damaged ones leave free is filled up.
      const std::size_t take = std::min<std::size_t>(files.size() - at, 256);
      const std::vector<ImageFile> some(files.begin() + static_cast<std::ptrdiff_t>(at),
                                        files.begin() + static_cast<std::ptrdiff_t>(at + take));
      const auto decoded = decode_all(some, shape_, job_.data.damaged, threads);
      at += take;
      if (!decoded && job_.data.damaged == Damaged::refused) return fail(decoded.error());
      const std::uint64_t sound = decoded ? decoded->count : 0;
      dropped_ += take - sound;
      for (std::uint64_t i = 0; i < sound; ++i) {
        const auto pixels = std::as_bytes(decoded->pixels(i));
        kept.insert(kept.end(), pixels.begin(), pixels.end());
        add_checksum(sums, checksum(pixels));
        labels.push_back(static_cast<char>(decoded->labels[i] & 0xff));
        labels.push_back(static_cast<char>(decoded->labels[i] >> 8));
        if (++count % each == 0) TRY(flush(kept, part, shard++));
      }
      if (job_.progress) job_.progress(done_ += take, all_);
    }
    if (!kept.empty()) TRY(flush(kept, part, shard++));
    TRY(replace_file(folder_ / (part + ".labels"), labels, Durability::synced));
    TRY(replace_file(folder_ / (part + ".checksums"), sums, Durability::synced));
    return Json{{"count", count},
                {"shard_samples", each},
                {kSumsChecksum, hex(checksum(std::string_view(sums)))},
                {"labels_checksum", hex(checksum(std::string_view(labels)))}};
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  Result<void> flush(std::vector<std::byte>& kept, const std::string& part, std::uint64_t shard) const {
    TRY(replace_file(shard_path(folder_, part, shard),
                     std::string_view(reinterpret_cast<const char*>(kept.data()), kept.size()),
                     Durability::synced));
    kept.clear();
    return {};
  }
  const PackJob& job_;
  const fs::path& folder_;
  InputShape shape_;
  std::uint64_t all_, done_ = 0, dropped_ = 0;
};

Result<Packed> pack_into(const PackJob& job, const fs::path& folder) {
  const ImageSet set = TRY(find_images(job.data));
  const InputShape shape{.channels = 3, .height = job.data.height, .width = job.data.width};
  PartWriter writer(job, folder, shape, set.train.size() + set.test.size());
  Json index{{"schema", kSchema}, {"height", shape.height}, {"width", shape.width}, {"classes", set.classes}};
  index["train"] = TRY(writer.write(set.train, "train"));
  index["test"] = TRY(writer.write(set.test, "test"));
  TRY(replace_file(folder / kIndex, to_pretty_text(index), Durability::synced));
  return Packed{.train = index["train"]["count"].get<std::uint64_t>(),
                .test = index["test"]["count"].get<std::uint64_t>(),
                .dropped = writer.dropped()};
}

}  // namespace

bool is_packed(const fs::path& folder) {
  std::error_code problem;
  return fs::is_regular_file(folder / kIndex, problem);
}

Result<InputShape> probe_packed(const fs::path& folder) {
  return packed_shape(TRY(read_index(folder)), (folder / kIndex).string());
}

Result<DataParts> load_packed(const fs::path& folder) {
  const Json index = TRY(read_index(folder));
  DataParts out;
  out.train = TRY(load_part(folder, index, "train"));
  out.test = TRY(load_part(folder, index, "test"));
  if (out.train.checksums.empty())
    out.notes.push_back(
        fmt::format("{} has no checksums of pixels, so that damage is not detected: an older dlrun packed it",
                    folder.string()));
  return out;
}

Result<Packed> pack_images(const PackJob& job) {
  const PartialFolder partial = TRY(PartialFolder::hold(job.into));
  TRY(partial.clear());  // of a process that was killed: half a part is of no use
  auto packed = pack_into(job, partial.path());
  const auto complete = packed ? partial.complete() : Result<void>();
  if (packed && complete) return packed;
  partial.remove();
  if (!packed) return packed;
  return fail(complete.error());
}

}  // namespace dlrun::runtime
