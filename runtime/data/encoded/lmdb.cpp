// The format `lmdb`: databases of Caffe's Datum, whose image is encoded or raw bytes. The file is read
// directly: a database is a tree of pages, and a value is contiguous in the file, so that a sample is a place
// as in any other container. Only what Caffe writes is read: one unnamed table of 64-bit LMDB without
// duplicate keys. A database that is being written is not to be read.
#include <cstring>
#include <optional>

#include "runtime/base/protobuf.hpp"
#include "runtime/data/encoded/container.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint32_t kMagic = 0xBEEFC0DE;
constexpr std::uint16_t kBranch = 0x01, kLeaf = 0x02, kBigValue = 0x01;
constexpr std::size_t kPageHeader = 16, kNodeHeader = 8;
constexpr int kMaxDepth = 32;
constexpr std::uint64_t kNoPage = UINT64_MAX;

struct Meta {
  std::uint32_t page_size = 0;
  std::uint64_t root = 0, entries = 0, transaction = 0, last_page = 0;
};

// The tree of one file. Every number is checked against the file before it is followed.
class LmdbFile {
 public:
  using Visit = std::function<Result<void>(std::uint64_t offset, std::uint64_t length)>;
  LmdbFile(const MappedFile& file, const Visit& visit) : file_(file), visit_(visit) {}

  Result<void> read() {
    meta_ = TRY(newest_meta());
    const std::uint64_t pages = file_.bytes().size() / meta_.page_size;
    if (meta_.last_page >= pages)
      return damaged_at(file_, file_.bytes().size(),
                        fmt::format("the database has {} pages, and the file {}: it was cut short",
                                    meta_.last_page + 1, pages));
    if (meta_.root == kNoPage) return {};
    TRY(read_page(meta_.root, 0));
    if (seen_ == meta_.entries) return {};
    return damaged_at(file_, 0, fmt::format("has {} entries, and its header says {}", seen_, meta_.entries));
  }

 private:
  template <class Number>
  std::optional<Number> number(std::uint64_t at) const {
    if (at > file_.bytes().size() || file_.bytes().size() - at < sizeof(Number)) return std::nullopt;
    Number out;
    std::memcpy(&out, file_.bytes().data() + at, sizeof out);
    return out;
  }

  // Of two headers the one that was written last counts. Offsets within MDB_meta: magic 0, version 4, page
  // size 24 (of the free list's table), the table of entries at 72: entries +32, root +40; then the last page
  // and the transaction.
  Result<Meta> newest_meta() const {
    Meta out;
    for (std::uint64_t page = 0, size = 4096; page < 2; ++page) {
      const std::uint64_t at = page * size + kPageHeader;
      const auto magic = number<std::uint32_t>(at);
      if (!magic || *magic != kMagic)
        return damaged_at(file_, at, "no LMDB header: its magic number is not there");
      const auto transaction = number<std::uint64_t>(at + 128);
      if (!transaction) return damaged_at(file_, at, "the file ends within the LMDB header");
      const std::uint32_t version = *number<std::uint32_t>(at + 4);
      if (version != 1)
        return damaged_at(file_, at + 4, fmt::format("LMDB version {}; only 1 is read", version));
      size = *number<std::uint32_t>(at + 24);
      if (size < 512 || size > 65536 || (size & (size - 1)) != 0)
        return damaged_at(file_, at + 24, fmt::format("pages of {} bytes", size));
      if (page > 0 && *transaction < out.transaction) continue;
      out = {.page_size = static_cast<std::uint32_t>(size),
             .root = *number<std::uint64_t>(at + 72 + 40),
             .entries = *number<std::uint64_t>(at + 72 + 32),
             .transaction = *transaction,
             .last_page = *number<std::uint64_t>(at + 120)};
    }
    return out;
  }

  Result<void> read_page(std::uint64_t page, int depth) {
    const std::uint64_t at = page * meta_.page_size;
    if (page > meta_.last_page || depth > kMaxDepth)
      return damaged_at(file_, 0, fmt::format("the tree names page {} of {}", page, meta_.last_page + 1));
    const auto flags = *number<std::uint16_t>(at + 10);
    const auto lower = *number<std::uint16_t>(at + 12);
    if (*number<std::uint64_t>(at) != page || (flags != kBranch && flags != kLeaf))
      return damaged_at(file_, at, fmt::format("page {} is not of the tree", page));
    if (lower < kPageHeader || lower > meta_.page_size)
      return damaged_at(file_, at + 12, "the page's length is out of range");
    for (std::uint64_t node = 0; node < (lower - kPageHeader) / 2; ++node) {
      const std::uint64_t start = at + *number<std::uint16_t>(at + kPageHeader + 2 * node);
      if (start + kNodeHeader > at + meta_.page_size)
        return damaged_at(file_, start, "a node lies outside of its page");
      TRY(flags == kBranch ? read_branch(start, depth) : read_leaf(start, at + meta_.page_size));
    }
    return {};
  }

  Result<void> read_branch(std::uint64_t node, int depth) {
    const std::uint64_t low = *number<std::uint16_t>(node), middle = *number<std::uint16_t>(node + 2),
                        high = *number<std::uint16_t>(node + 4);
    return read_page(low | middle << 16 | high << 32, depth + 1);
  }

  Result<void> read_leaf(std::uint64_t node, std::uint64_t page_end) {
    const std::uint64_t low = *number<std::uint16_t>(node), high = *number<std::uint16_t>(node + 2);
    const auto flags = *number<std::uint16_t>(node + 4);
    const std::uint64_t length = low | high << 16, key = *number<std::uint16_t>(node + 6);
    std::uint64_t value = node + kNodeHeader + key, end = page_end;
    if (flags == kBigValue) {
      const auto page = number<std::uint64_t>(value);
      if (!page || *page > meta_.last_page)
        return damaged_at(file_, node, "a value names a page outside of the file");
      value = *page * meta_.page_size + kPageHeader;
      end = (meta_.last_page + 1) * meta_.page_size;
    } else if (flags != 0) {
      return damaged_at(file_, node, "tables within tables and duplicate keys are not supported");
    }
    if (value > end || length > end - value)
      return damaged_at(file_, node, fmt::format("a value of {} bytes lies outside of its page", length));
    if (++seen_ > meta_.entries) return damaged_at(file_, node, "has more entries than its header says");
    return visit_(value, length);
  }

  const MappedFile& file_;
  const Visit& visit_;
  Meta meta_;
  std::uint64_t seen_ = 0;
};

struct Datum {
  RawShape shape;
  std::int64_t label = 0;
  std::string_view data;
  bool encoded = false;
};

// caffe.proto: 1 channels, 2 height, 3 width, 4 data, 5 label, 6 float_data, 7 encoded.
Result<Datum> parse_datum(std::string_view message) {
  Datum out;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    const auto number = static_cast<std::int32_t>(field->value);
    if (field->number == 1) out.shape.channels = number;
    if (field->number == 2) out.shape.height = number;
    if (field->number == 3) out.shape.width = number;
    if (field->number == 4) out.data = field->bytes;
    if (field->number == 5) out.label = number;
    if (field->number == 6)
      return fail(
          Error{.kind = ErrorKind::input, .what = "the Datum has float_data, which is not supported"});
    if (field->number == 7) out.encoded = field->value != 0;
  }
  if (!reader.is_sound()) return fail(Error{.kind = ErrorKind::input, .what = "the value is no Caffe Datum"});
  const RawShape& of = out.shape;
  const bool possible = of.channels > 0 && of.height > 0 && of.width > 0 && of.channels <= 1 << 12 &&
                        of.height <= 1 << 14 && of.width <= 1 << 14;
  if (out.encoded ||
      (possible && static_cast<std::uint64_t>(of.channels * of.height * of.width) == out.data.size()))
    return out;
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("the Datum has {} bytes, and its size is {} x {} x {}",
                                        out.data.size(), of.channels, of.height, of.width)});
}

Result<void> find_datums(const MappedFile& file, const ContainerSpec& spec, FoundSamples& out) {
  const LmdbFile::Visit visit = [&](std::uint64_t offset, std::uint64_t length) -> Result<void> {
    const auto bytes = file.bytes().subspan(offset, length);
    const auto datum = parse_datum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto label = datum ? class_of(datum->label, spec) : tl::unexpected(datum.error());
    if (label) {
      out.samples.push_back({offset, static_cast<std::uint32_t>(length), *label});
      return {};
    }
    Error error = label.error();
    error.where = place_in_file(file.name(), offset);
    if (spec.damaged == Damaged::refused) return fail(std::move(error));
    out.dropped.push_back(error.text());
    return {};
  };
  return LmdbFile(file, visit).read();
}

// Raw planes stay in the order of the file: blue, green, red where OpenCV made them.
Result<EncodedImage> unwrap_datum(EncodedSamples::Record record) {
  const Datum datum = TRY(parse_datum({reinterpret_cast<const char*>(record.data()), record.size()}));
  EncodedImage out{.bytes = {reinterpret_cast<const std::uint8_t*>(datum.data.data()), datum.data.size()},
                   .raw = {}};
  if (!datum.encoded) out.raw = datum.shape;
  return out;
}

constexpr Container kLmdb = {
    .accepts =
        [](const std::filesystem::path& file) { return file.extension() == ".mdb" && file.stem() != "lock"; },
    .find = find_datums,
    .unwrap = [](const ContainerSpec&) -> EncodedSamples::Unwrap { return unwrap_datum; },
    .files = "LMDB databases (data.mdb)"};

}  // namespace

DataFormat::Read read_lmdb_section;

Result<std::shared_ptr<const DataSource>> read_lmdb_section(yaml::Fields& data, double train_share) {
  return make_container_source(TRY(read_container_section(data, train_share)), kLmdb);
}

}  // namespace dlrun::runtime
