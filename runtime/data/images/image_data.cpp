#include "runtime/data/images/image_data.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/data/images/image.hpp"
#include "runtime/data/images/packed.hpp"
#include "runtime/data/images/sharded.hpp"
#include "runtime/data/images/transform.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

InputShape image_shape(const ImageSpec& spec, const ImageSet& set) {
  return {.channels = spec.channels,
          .height = spec.height,
          .width = spec.width,
          .classes = static_cast<std::int64_t>(set.classes.size())};
}

Result<Image> read_image(const std::filesystem::path& path) {
  const MappedFile file = TRY(MappedFile::open(path));
  return decode_image({reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.bytes().size()},
                      path.string());
}

// Why each image cannot be decoded; empty if it can.
std::vector<std::string> decode_into(std::span<std::byte> room, const std::vector<ImageFile>& files,
                                     const InputShape& shape, std::size_t stride, unsigned threads) {
  std::vector<std::string> problems(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      const auto image = read_image(files[i].path);
      if (!image)
        problems[i] = image.error().text();
      else
        put_planes(fitted(*image, shape.width, shape.height), shape.channels, Side::as_it_is,
                   reinterpret_cast<std::uint8_t*>(room.data()) + i * stride);
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  return problems;
}

tl::unexpected<Error> damaged_error(const std::vector<std::string>& problems) {
  constexpr std::size_t shown = 10;
  std::vector<std::string> said;
  std::size_t count = 0;
  for (const std::string& problem : problems)
    if (!problem.empty() && ++count <= shown) said.push_back("  " + problem);
  if (count > shown) said.push_back(fmt::format("  and {} more", count - shown));
  return fail(Error{
      .kind = ErrorKind::input,
      .what = fmt::format("{} of {} images cannot be decoded:\n{}", count, problems.size(), join(said, "\n")),
      .hint = "repair or remove them, or set data: {damaged: drop}"});
}

// Moves the sound ones together.
void drop_damaged(Dataset& data, const std::vector<std::string>& problems) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i].empty()) continue;
    if (kept != i)
      std::memmove(data.bytes.data() + kept * data.stride, data.bytes.data() + i * data.stride, data.stride);
    data.labels[kept++] = data.labels[i];
  }
  data.labels.resize(kept);
  data.count = kept;
}

}  // namespace

Result<Dataset> decode_all(const std::vector<ImageFile>& files, const InputShape& shape, Damaged damaged,
                           unsigned threads) {
  Dataset out;
  out.shape = shape;
  out.count = files.size();
  out.stride = out.pixels_per_sample();
  out.bytes = TRY(HugeBuffer::make(out.stride * files.size()));
  for (const ImageFile& file : files) out.labels.push_back(file.label);
  const auto problems = decode_into(out.bytes.bytes(), files, shape, out.stride, threads);
  const bool any =
      std::any_of(problems.begin(), problems.end(), [](const auto& text) { return !text.empty(); });
  if (any && damaged == Damaged::refused) return damaged_error(problems);
  if (any) drop_damaged(out, problems);
  if (!files.empty() && out.count == 0) return damaged_error(problems);
  return out;
}

Result<InputShape> probe_images(const ImageSpec& spec) {
  if (is_sharded(spec.directory)) return probe_sharded(spec);
  if (is_packed(spec.directory)) return probe_packed(spec.directory);
  return image_shape(spec, TRY(find_images(spec)));
}

Result<Dataset> keep_compressed(const std::vector<ImageFile>& files, const InputShape& shape,
                                Damaged damaged) {
  Dataset out;
  out.shape = shape;
  out.count = files.size();
  out.damaged = damaged;
  const auto encoded = std::make_shared<EncodedSamples>();
  std::vector<std::filesystem::path> paths;
  for (const ImageFile& file : files) {
    encoded->extents.push_back({.file = static_cast<std::uint32_t>(paths.size())});
    paths.push_back(file.path);
    out.labels.push_back(file.label);
  }
  encoded->files = TRY(FileSet::open(std::move(paths)));
  out.encoded = encoded;
  return out;
}

Result<DataParts> load_images(const ImageSpec& spec) {
  if (is_sharded(spec.directory)) return load_sharded(spec);
  if (is_packed(spec.directory)) return load_packed(spec.directory);
  const ImageSet set = TRY(find_images(spec));
  const InputShape shape = image_shape(spec, set);
  const std::uint64_t decoded =
      static_cast<std::uint64_t>(shape.numbers()) * (set.train.size() + set.test.size());
  DataParts out;
  if (!spec.is_list()) out.classes = set.classes;
  if (spec.keep == ImageSpec::Keep::compressed || decoded > spec.memory) {
    out.train = TRY(keep_compressed(set.train, shape, spec.damaged));
    out.test = TRY(keep_compressed(set.test, shape, spec.damaged));
    return out;
  }
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  out.train = TRY(decode_all(set.train, shape, spec.damaged, threads));
  out.test = TRY(decode_all(set.test, shape, spec.damaged, threads));
  const std::size_t dropped = set.train.size() + set.test.size() - out.train.count - out.test.count;
  if (dropped > 0) out.notes.push_back(fmt::format("{} damaged images are dropped", dropped));
  return out;
}

}  // namespace dlrun::runtime
