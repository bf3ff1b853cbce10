// See idx.hpp.
#include "runtime/data/idx.hpp"

#include <algorithm>
#include <array>

#include "runtime/data/data_format.hpp"
#include "runtime/data/stored_file.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint32_t images_magic = 0x00000803;  // bytes, three dimensions
constexpr std::uint32_t labels_magic = 0x00000801;  // bytes, one dimension
constexpr std::uint64_t kMaxSide = 1u << 14;

struct Header {
  std::uint64_t count = 0, height = 1, width = 1;
  std::size_t length = 0;  // of the header
  std::uint64_t expected() const { return length + count * height * width; }
};

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[offset + i]);
  return value;
}

std::string_view meaning(std::uint32_t magic) {
  if (magic == images_magic) return " (images)";
  if (magic == labels_magic) return " (labels)";
  return "";
}

Result<Header> read_header(const StoredFile& file, std::uint32_t magic) {
  const std::size_t dimensions = magic & 0xff;
  Header header{.length = 4 + 4 * dimensions};
  const std::vector<std::byte> head = TRY(file.head(header.length));
  if (head.size() >= 4 && big_endian(head, 0) != magic)
    return bad_input(file.name(),
                     fmt::format("magic number {}{} at offset 0; expected {}{}", big_endian(head, 0),
                                 meaning(big_endian(head, 0)), magic, meaning(magic)));
  if (head.size() < header.length)
    return bad_input(file.name(), fmt::format("ends at offset {}, within the IDX header of {} bytes",
                                              head.size(), header.length));
  header.count = big_endian(head, 4);
  if (header.count == 0) return bad_input(file.name(), "the IDX header has 0 items (offset 4)");
  if (dimensions == 1) return header;
  header.height = big_endian(head, 8);
  header.width = big_endian(head, 12);
  if (header.height == 0 || header.width == 0 || header.height > kMaxSide || header.width > kMaxSide)
    return bad_input(
        file.name(),
        fmt::format("the IDX header has images of {} x {} (offset 8), which is out of range [1, {}]",
                    header.height, header.width, kMaxSide));
  return header;
}

std::string sizes(const Header& header, std::uint32_t magic) {
  return magic == images_magic ? fmt::format("{} x {} x {}", header.count, header.height, header.width)
                               : fmt::format("{} labels", header.count);
}

// The length that the header promises against the one that is there.
Result<void> check_length(const StoredFile& file, const Header& header, std::uint32_t magic,
                          StreamLength have) {
  if (have.bytes == header.expected()) return {};
  const bool shorter = have.bytes < header.expected();
  return bad_input(
      file.name(),
      fmt::format("the IDX header has {}, {} bytes in all: {}{} {}", sizes(header, magic), header.expected(),
                  file.compressed() ? "the uncompressed data is " : "the file is ",
                  length_difference(have, header.expected()),
                  shorter ? fmt::format("(it ends at offset {})", have.bytes)
                          : fmt::format("(trailing bytes from offset {} on)", header.expected())),
      shorter ? "download it again: it is truncated" : "");
}

// Before any memory is asked for: what the header says must be possible for a file of this size.
Result<void> check_possible(const StoredFile& file, const Header& header, std::uint32_t magic) {
  if (!file.compressed())
    return check_length(file, header, magic, StreamLength{.bytes = file.stored_bytes()});
  if (header.expected() <= file.longest()) return {};
  return bad_input(file.name(),
                   fmt::format("the IDX header has {}, {} bytes in all: {} compressed bytes cannot hold that",
                               sizes(header, magic), header.expected(), file.stored_bytes()));
}

Result<HugeBuffer> read_body(const StoredFile& file, const Header& header, std::uint32_t magic) {
  HugeBuffer body = TRY(HugeBuffer::make(header.expected()));
  TRY(check_length(file, header, magic, TRY(file.read(body.bytes()))));
  return body;
}

// The file under its usual names: dashes or a dot before "idx", plain or .gz.
Result<StoredFile> find_file(const std::filesystem::path& folder, std::string_view part,
                             std::string_view kind) {
  const std::array<std::string, 4> names = {
      fmt::format("{}-{}-ubyte", part, kind), fmt::format("{}-{}-ubyte.gz", part, kind),
      fmt::format("{}-{}.{}-ubyte", part, kind.substr(0, 6), kind.substr(7)),
      fmt::format("{}-{}.{}-ubyte.gz", part, kind.substr(0, 6), kind.substr(7))};
  std::error_code problem;
  for (const std::string& name : names)
    if (std::filesystem::exists(folder / name, problem)) return StoredFile::open(folder / name);
  if (problem)  // of the last name; what is not there is no problem to exists()
    return bad_input((folder / names[0]).string(), "cannot be read: " + problem.message());
  const bool folder_there = std::filesystem::is_directory(folder, problem);
  return fail(Error{.kind = ErrorKind::input,
                    .what = folder_there ? fmt::format("no such file, and no {} either", names[1])
                                         : fmt::format("no such file: {} is not a folder", folder.string()),
                    .where = (folder / names[0]).string(),
                    .hint = "data.dir of the job file must be the folder of the four IDX files"});
}

// The two files of a part, their headers read and compared.
struct IdxPart {
  StoredFile images, labels;
  Header image_header, label_header;
};

Result<IdxPart> open_part(const std::filesystem::path& folder, std::string_view part) {
  IdxPart out;
  out.images = TRY(find_file(folder, part, "images-idx3"));
  out.labels = TRY(find_file(folder, part, "labels-idx1"));
  out.image_header = TRY(read_header(out.images, images_magic));
  out.label_header = TRY(read_header(out.labels, labels_magic));
  if (out.image_header.count != out.label_header.count)
    return bad_input(out.labels.name(),
                     fmt::format("has {} labels, but {} has {} images", out.label_header.count,
                                 out.images.name(), out.image_header.count));
  TRY(check_possible(out.images, out.image_header, images_magic));
  TRY(check_possible(out.labels, out.label_header, labels_magic));
  return out;
}

struct IdxParts {
  IdxPart train, test;
};

Result<IdxParts> open_parts(const std::filesystem::path& folder) {
  IdxParts out;
  out.train = TRY(open_part(folder, "train"));
  out.test = TRY(open_part(folder, "t10k"));
  const Header &train = out.train.image_header, &test = out.test.image_header;
  if (train.height != test.height || train.width != test.width)
    return bad_input(out.test.images.name(),
                     fmt::format("has images of {} x {}, but {} has {} x {}", test.height, test.width,
                                 out.train.images.name(), train.height, train.width));
  return out;
}

Result<std::vector<std::uint16_t>> read_labels(const IdxPart& part, std::int64_t classes) {
  const Header& header = part.label_header;
  const HugeBuffer body = TRY(read_body(part.labels, header, labels_magic));
  std::vector<std::uint16_t> labels(header.count);
  for (std::uint64_t i = 0; i < header.count; ++i) {
    labels[i] = std::to_integer<std::uint8_t>(body.data()[header.length + i]);
    if (labels[i] >= classes)
      return bad_input(part.labels.name(),
                       fmt::format("label {} at offset {} is out of range [0, {}]", labels[i],
                                   header.length + i, classes - 1),
                       "data.classes of the job file sets the number of classes");
  }
  return labels;
}

InputShape idx_shape(const Header& header, std::int64_t classes) {
  return InputShape{.channels = 1,
                    .height = static_cast<std::int64_t>(header.height),
                    .width = static_cast<std::int64_t>(header.width),
                    .classes = classes};
}

Result<Dataset> read_part(const IdxPart& part, std::int64_t classes) {
  const Header& header = part.image_header;
  Dataset out;
  out.labels = TRY(read_labels(part, classes));
  out.bytes = TRY(read_body(part.images, header, images_magic));
  out.shape = idx_shape(header, classes);
  out.count = header.count;
  out.first = header.length;
  out.stride = header.height * header.width;
  return out;
}

}  // namespace

Result<InputShape> probe_idx(const std::filesystem::path& folder, std::int64_t classes) {
  const IdxParts parts = TRY(open_parts(folder));
  return idx_shape(parts.train.image_header, classes);
}

Result<InputShape> check_idx(const std::filesystem::path& folder, std::int64_t classes) {
  const IdxParts parts = TRY(open_parts(folder));
  TRY(read_labels(parts.test, classes));
  TRY(read_labels(parts.train, classes));
  return idx_shape(parts.train.image_header, classes);
}

Result<DataParts> load_idx(const std::filesystem::path& folder, std::int64_t classes) {
  const IdxParts parts = TRY(open_parts(folder));
  DataParts out;
  out.test = TRY(read_part(parts.test, classes));
  out.train = TRY(read_part(parts.train, classes));
  return out;
}

namespace {

class IdxSource final : public DataSource {
 public:
  IdxSource(std::filesystem::path folder, std::int64_t classes)
      : folder_(std::move(folder)), classes_(classes) {}
  std::size_t channels() const override { return 1; }
  Result<InputShape> probe() const override { return probe_idx(folder_, classes_); }
  Result<InputShape> check() const override { return check_idx(folder_, classes_); }
  Result<DataParts> load(std::uint64_t) const override { return load_idx(folder_, classes_); }
  std::string place() const override { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  std::int64_t classes_;
};

}  // namespace

DataFormat::Read read_idx_section;

Result<std::shared_ptr<const DataSource>> read_idx_section(yaml::Fields& data, double) {
  const std::int64_t classes = TRY(data.integer_or("classes", 10, 2, 256));
  return std::make_shared<IdxSource>(TRY(data.text("dir")), classes);
}

}  // namespace dlrun::runtime
