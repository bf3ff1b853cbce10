// See cifar10.hpp.
#include "runtime/data/cifar10.hpp"

#include "runtime/data/data_format.hpp"
#include "runtime/data/stored_file.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t pixels = 3 * 32 * 32;
constexpr std::uint64_t record = 1 + pixels;
constexpr int classes = 10;

// Refuses a file that is not whole records, saying by how much.
Result<void> check_batch_length(const StoredFile& file) {
  const std::uint64_t size = file.stored_bytes();
  if (size % record == 0) return {};
  const std::uint64_t records = size / record + 1;
  const std::uint64_t missing = records * record - size;
  return fail(Error{
      .kind = ErrorKind::input,
      .what = fmt::format("{} records of {} bytes are {}; the file has {} bytes: last record short by {} "
                          "byte{} (it starts at offset {})",
                          records, record, records * record, size, missing, missing == 1 ? "" : "s",
                          (records - 1) * record),
      .where = file.name(),
      .hint = "download it again: it is truncated, or is not the binary version of CIFAR-10"});
}

Result<StoredFile> open_batch(const std::filesystem::path& path) {
  StoredFile file = TRY(StoredFile::open(path));
  TRY(check_batch_length(file));
  return file;
}

struct Files {
  std::vector<StoredFile> train, test;
};

Result<Files> open_all(const std::filesystem::path& folder) {
  Files out;
  for (int i = 1; i <= 5; ++i)
    out.train.push_back(TRY(open_batch(folder / fmt::format("data_batch_{}.bin", i))));
  out.test.push_back(TRY(open_batch(folder / "test_batch.bin")));
  return out;
}

Result<void> take_labels(Dataset& out, const StoredFile& file, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto label = std::to_integer<std::uint8_t>(out.bytes.data()[(first + i) * record]);
    if (label >= classes)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("label {} of record {} at offset {} is out of range [0, 9]",
                                            label, i, i * record),
                        .where = file.name()});
    out.labels.push_back(label);
  }
  return {};
}

Result<Dataset> read_files(const std::vector<StoredFile>& files) {
  std::uint64_t total = 0;
  for (const StoredFile& file : files) total += file.stored_bytes();
  Dataset out;
  out.shape = cifar10_shape();
  out.count = total / record;
  out.bytes = TRY(HugeBuffer::make(total));
  out.first = 1;
  out.stride = record;
  std::uint64_t have = 0;
  for (const StoredFile& file : files) {
    TRY(file.read(out.bytes.bytes().subspan(have, file.stored_bytes())));
    TRY(take_labels(out, file, have / record, file.stored_bytes() / record));
    have += file.stored_bytes();
  }
  return out;
}

}  // namespace

InputShape cifar10_shape() {
  return InputShape{.channels = 3, .height = 32, .width = 32, .classes = classes};
}

Result<InputShape> probe_cifar10(const std::filesystem::path& folder) {
  TRY(open_all(folder));
  return cifar10_shape();
}

Result<DataParts> load_cifar10(const std::filesystem::path& folder) {
  const Files files = TRY(open_all(folder));
  DataParts out;
  out.train = TRY(read_files(files.train));
  out.test = TRY(read_files(files.test));
  return out;
}

namespace {

class Cifar10Source final : public DataSource {
 public:
  explicit Cifar10Source(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::size_t channels() const override { return 3; }
  Result<InputShape> probe() const override { return probe_cifar10(folder_); }
  Result<DataParts> load(std::uint64_t) const override { return load_cifar10(folder_); }
  std::string place() const override { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace

DataFormat::Read read_cifar10_section;

Result<std::shared_ptr<const DataSource>> read_cifar10_section(yaml::Fields& data, double) {
  return std::make_shared<Cifar10Source>(TRY(data.text("dir")));
}

}  // namespace dlrun::runtime
