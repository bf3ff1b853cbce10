// See npy_array.hpp.
#include "runtime/data/numbers/npy_array.hpp"

#include <algorithm>

#include "runtime/data/numbers/npy_header.hpp"
#include "runtime/data/numbers/shown_text.hpp"
#include "runtime/data/numbers/zip.hpp"
#include "runtime/data/short_list.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr const char* kCut = "it was cut short: copy it again";

// Of what lies in a file from `begin` on, or in `unpacked`.
struct Place {
  std::shared_ptr<const FileSet> files;
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::vector<std::uint8_t> unpacked = {};
};

class NpyArray final : public NumberArray {
 public:
  NpyArray(std::string name, NpyHeader header, Place place, Rows rows)
      : NumberArray(std::move(name), header.type, std::move(header.shape)), place_(std::move(place)) {
    begin_ = place_.begin + header.length;
    if (rows == Rows::whole_file) add_row_axis();
  }

  Result<void> read(std::uint64_t row, std::span<float> out) const override {
    const std::uint64_t at = begin_ + row * out.size() * bytes_of(type());
    if (type() == NumberType::float32) return take(at, std::as_writable_bytes(out));
    thread_local std::vector<std::byte> raw;
    raw.resize(out.size() * bytes_of(type()));
    TRY(take(at, raw));
    to_floats(type(), raw, out);
    return {};
  }
  Result<std::vector<double>> read_all() const override {
    std::vector<double> out(rows() * numbers_per_row());
    std::vector<std::byte> raw(out.size() * bytes_of(type()));
    TRY(take(begin_, raw));
    to_doubles(type(), raw, out);
    return out;
  }
  std::string place(std::uint64_t number) const override {
    return fmt::format("{}: offset {}", name(), begin_ + number * bytes_of(type()));
  }

 private:
  Result<void> take(std::uint64_t at, std::span<std::byte> out) const {
    const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size());
    if (place_.unpacked.empty()) return place_.files->read(place_.file, at, bytes);
    std::copy_n(place_.unpacked.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), bytes.begin());
    return {};
  }

  Place place_;
  std::uint64_t begin_ = 0;
};

Result<void> check_length(const NpyHeader& header, std::uint64_t bytes, const std::string& name) {
  if (header.bytes() == bytes) return {};
  return bad_input(name,
                   fmt::format("the header at offset 0 promises {} {} numbers, which end at byte {}; the "
                               "array ends at {}",
                               header.numbers, name_of(header.type), header.bytes(), bytes),
                   header.bytes() > bytes ? kCut : "write it with numpy.save, one array a file");
}

// The header at `begin` of what has so many bytes in all.
template <class Read>
Result<NpyHeader> read_header(const Read& read, std::uint64_t bytes, const std::string& name) {
  std::vector<std::uint8_t> head(std::min<std::uint64_t>(bytes, kNpyPrefix));
  TRY(read(head));
  const std::size_t length = TRY(npy_header_length(head, name));
  if (length > bytes)
    return bad_input(name, fmt::format("the header has {} bytes, and the file {}", length, bytes), kCut);
  head.resize(length);
  TRY(read(head));
  return parse_npy_header(head, name);
}

ReadableFile readable(const std::shared_ptr<const FileSet>& files, std::uint64_t size) {
  return {.name = files->path(0).string(),
          .size = size,
          .read = [files](std::uint64_t offset, std::span<std::uint8_t> room) {
            return files->read(0, offset, room);
          }};
}

Result<ZipMember> find_member(const ReadableFile& file, const std::string& wanted) {
  std::vector<std::string> names;
  for (ZipMember& member : TRY(read_zip_directory(file))) {
    if (member.name == wanted + ".npy") return std::move(member);
    if (member.name.ends_with(".npy"))
      names.push_back(shown(std::string_view(member.name).substr(0, member.name.size() - 4)));
  }
  return bad_input(file.name, fmt::format("has no array {}", shown(wanted)),
                   names.empty() ? "it has none at all" : "it has " + short_list(names));
}

}  // namespace

Result<std::shared_ptr<const NumberArray>> open_npy(std::shared_ptr<const FileSet> files, std::size_t file,
                                                    Rows rows) {
  const std::string name = files->path(file).string();
  const std::uint64_t bytes = TRY(open_regular_file(files->path(file))).size;
  NpyHeader header =
      TRY(read_header([&](std::span<std::uint8_t> room) { return files->read(file, 0, room); }, bytes, name));
  TRY(check_length(header, bytes, name));
  if (header.shape.empty() && rows == Rows::along_first_axis)
    return bad_input(name, "is a single number, not an array of samples");
  return std::make_shared<NpyArray>(name, std::move(header),
                                    Place{.files = std::move(files), .file = file, .begin = 0}, rows);
}

Result<std::shared_ptr<const NumberArray>> open_npz(const std::filesystem::path& path,
                                                    const std::string& member, std::uint64_t memory) {
  const std::uint64_t size = TRY(open_regular_file(path)).size;
  const auto files = std::make_shared<const FileSet>(TRY(FileSet::open({path})));
  const ReadableFile file = readable(files, size);
  const ZipMember found = TRY(find_member(file, member));
  const std::string name = fmt::format("{}: {}", file.name, member);
  Place place{.files = files, .file = 0, .begin = found.offset};
  if (found.method == ZipMember::Method::deflated) {
    if (found.size > memory)
      return bad_input(name,
                       fmt::format("is packed, and has {} unpacked: more than train.data.memory of {}",
                                   format_size(found.size), format_size(memory)),
                       "write it unpacked by numpy.savez or numpy.save, or set a larger memory");
    place.unpacked = TRY(read_zip_member(file, found));
    place.begin = 0;
  }
  const auto read = [&](std::span<std::uint8_t> room) -> Result<void> {
    if (place.unpacked.empty()) return files->read(0, place.begin, room);
    std::copy_n(place.unpacked.begin(), room.size(), room.begin());
    return {};
  };
  NpyHeader header = TRY(read_header(read, found.size, name));
  TRY(check_length(header, found.size, name));
  if (header.shape.empty()) return bad_input(name, "is a single number, not an array of samples");
  return std::make_shared<NpyArray>(name, std::move(header), std::move(place), Rows::along_first_axis);
}

}  // namespace dlrun::runtime
