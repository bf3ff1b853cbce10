#include "runtime/data/images/image_data.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/data/images/image.hpp"
#include "runtime/data/images/packed.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 30;  // in memory; more is packed and mapped

InputShape image_shape(const ImageSpec& spec, const ImageSet& set) {
  return {.channels = 3,
          .height = spec.height,
          .width = spec.width,
          .classes = static_cast<std::int64_t>(set.classes.size())};
}

Result<Image> read_image(const std::filesystem::path& path) {
  const MappedFile file = TRY(MappedFile::open(path));
  return decode_image({reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.bytes().size()},
                      path.string());
}

// Interleaved colours to planes.
void put_planes(const Image& image, std::uint8_t* out) {
  const std::size_t plane = image.pixels.size() / 3;
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      out[channel * plane + i] = image.pixels[i * 3 + channel];
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
        put_planes(fitted(*image, shape.width, shape.height),
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
  if (out.stride * files.size() > kMaxBytes)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("{} images of {} x {} take {}, more than is kept in memory", files.size(),
                                  shape.height, shape.width, format_size(out.stride * files.size())),
              .hint = "pack them first: dlrun-train --prepare DIR --into DIR2"});
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
  if (is_packed(spec.directory)) return probe_packed(spec.directory);
  return image_shape(spec, TRY(find_images(spec)));
}

Result<DataParts> load_images(const ImageSpec& spec) {
  if (is_packed(spec.directory)) return load_packed(spec.directory);
  const ImageSet set = TRY(find_images(spec));
  const InputShape shape = image_shape(spec, set);
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  DataParts out;
  out.train = TRY(decode_all(set.train, shape, spec.damaged, threads));
  out.test = TRY(decode_all(set.test, shape, spec.damaged, threads));
  const std::size_t dropped = set.train.size() + set.test.size() - out.train.count - out.test.count;
  if (dropped > 0) out.notes.push_back(fmt::format("{} damaged images are dropped", dropped));
  return out;
}

}  // namespace dlrun::runtime
