// See hdf5_array.hpp.
#include "runtime/data/numbers/hdf5_array.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/data/numbers/hdf5_library.hpp"
#include "runtime/data/numbers/shown_text.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using Id = Hdf5Library::Id;
using Size = Hdf5Library::Size;

constexpr int kInteger = 0, kFloat = 1;  // H5T_class_t
constexpr int kMaxHdf5Axes = 32;

// An object of HDF5, closed at its end. Its owner holds the lock.
class Handle {
 public:
  Handle(Id id, int (*close)(Id)) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Id id() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  Id id_;
  int (*close_)(Id);
};

std::string hint_of(const std::string& problem) {
  const auto says = [&](const char* words) { return problem.find(words) != std::string::npos; };
  if (says("lock"))
    return "the file system refuses locks: set environment.set: {HDF5_USE_FILE_LOCKING: \"FALSE\"}";
  if (says("Too many open files")) return "raise the limit of open files: ulimit -n";
  if (says("not a dataset")) return "h5ls -r shows the names that it has";
  return "it was cut short or is damaged: copy it again, and look at it with h5ls -r";
}

}  // namespace

class OpenHdf5File final : public Hdf5File, public std::enable_shared_from_this<OpenHdf5File> {
 public:
  OpenHdf5File(std::string name, Hdf5Library library, std::shared_ptr<Hdf5OpenFiles> together)
      : name_(std::move(name)), library_(std::move(library)), together_(std::move(together)) {}
  OpenHdf5File(const OpenHdf5File&) = delete;
  OpenHdf5File& operator=(const OpenHdf5File&) = delete;
  ~OpenHdf5File() override {
    const auto lock = library_.lock();
    close();
  }
  Result<std::shared_ptr<const NumberArray>> array(const std::string& name) const override;
  const Hdf5Library& library() const { return library_; }

  // For callers that hold the lock: the file or a data set, opened again if others took its place.
  Result<void> use() const;
  Result<Id> dataset(const std::string& name) const;

 private:
  tl::unexpected<Error> no_numbers(const std::string& name, const std::string& why) const {
    return bad_input(fmt::format("{}: {}", name_, name), why,
                     "write numbers: float16, float32, float64 or whole numbers");
  }
  bool exists(const std::string& name) const;
  Result<NumberType> type_of(Id dataset, const std::string& name) const;
  Result<std::vector<std::uint64_t>> shape_of(Id dataset, const std::string& name) const;
  Result<void> open_now() const;
  void close() const;

  std::string name_;
  Hdf5Library library_;
  std::shared_ptr<Hdf5OpenFiles> together_;
  mutable std::optional<Id> file_;
  mutable std::map<std::string, Id> datasets_;
};

namespace {

class Hdf5Array final : public NumberArray {
 public:
  Hdf5Array(std::shared_ptr<const OpenHdf5File> file, std::string name, std::string dataset, NumberType type,
            std::vector<std::uint64_t> shape)
      : NumberArray(std::move(name), type, std::move(shape)),
        file_(std::move(file)),
        dataset_(std::move(dataset)) {}

  Result<void> read(std::uint64_t row, std::span<float> out) const override;
  Result<std::vector<double>> read_all() const override;
  std::string place(std::uint64_t number) const override {
    std::vector<std::string> indices(shape().size());
    for (std::size_t axis = shape().size(); axis-- > 0; number /= shape()[axis])
      indices[axis] = std::to_string(number % shape()[axis]);
    return fmt::format("{}[{}]", name(), join(indices, ", "));
  }

 private:
  std::shared_ptr<const OpenHdf5File> file_;
  std::string dataset_;
};

}  // namespace

Result<void> OpenHdf5File::open_now() const {
  const RegularFile regular = TRY(open_regular_file(name_));
  constexpr unsigned kReadOnly = 0;
  const Id file = library_.file_open(name_.c_str(), kReadOnly, 0);
  if (file >= 0) {
    file_ = file;
    return {};
  }
  const std::string problem = library_.problem();
  return bad_input(name_, fmt::format("HDF5 cannot open this file of {} bytes: {}", regular.size, problem),
                   hint_of(problem));
}

void OpenHdf5File::close() const {
  if (!file_) return;
  for (const auto& [name, dataset] : datasets_) library_.dataset_close(dataset);
  datasets_.clear();
  library_.file_close(*file_);
  file_.reset();
  together_->files.remove(this);
}

Result<void> OpenHdf5File::use() const {
  auto& files = together_->files;
  if (file_) {
    files.splice(files.begin(), files, std::find(files.begin(), files.end(), this));
    return {};
  }
  if (files.size() >= Hdf5OpenFiles::kMost) files.back()->close();
  TRY(open_now());
  files.push_front(this);
  return {};
}

Result<Id> OpenHdf5File::dataset(const std::string& name) const {
  TRY(use());
  if (const auto found = datasets_.find(name); found != datasets_.end()) return found->second;
  const Id dataset = library_.dataset_open(*file_, name.c_str(), 0);
  if (dataset >= 0) return datasets_[name] = dataset;
  const std::string problem = library_.problem();
  return bad_input(fmt::format("{}: {}", name_, name), "cannot be opened as a data set: " + problem,
                   hint_of(problem));
}

// Each group of the path must be there before the next one is asked for.
bool OpenHdf5File::exists(const std::string& name) const {
  for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string part = name.substr(0, end);
    if (!part.empty() && part != "/" && library_.link_exists(*file_, part.c_str(), 0) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

Result<NumberType> OpenHdf5File::type_of(Id dataset, const std::string& name) const {
  const Handle type(library_.dataset_type(dataset), library_.type_close);
  const int kind = type.valid() ? library_.type_class(type.id()) : -1;
  const std::size_t bytes = type.valid() ? library_.type_size(type.id()) : 0;
  std::optional<NumberType> out;
  if (kind == kFloat) out = number_type('f', bytes);
  if (kind == kInteger) out = number_type(library_.type_sign(type.id()) == 0 ? 'u' : 'i', bytes);
  if (out) return *out;
  return no_numbers(name, fmt::format("has values of HDF5's class {} with {} bytes, which are no numbers "
                                      "that can be read",
                                      kind, bytes));
}

Result<std::vector<std::uint64_t>> OpenHdf5File::shape_of(Id dataset, const std::string& name) const {
  const Handle space(library_.dataset_space(dataset), library_.space_close);
  const int axes = space.valid() ? library_.space_axes(space.id()) : -1;
  if (axes < 1 || axes > kMaxHdf5Axes) return no_numbers(name, fmt::format("has {} axes", axes));
  std::vector<Size> extents(static_cast<std::size_t>(axes));
  library_.space_extents(space.id(), extents.data(), nullptr);
  std::uint64_t numbers = 1;
  for (const Size extent : extents) {
    if (extent == 0) return no_numbers(name, "is empty: an extent is 0");
    if (extent > kMaxNumbers / numbers) return no_numbers(name, "has a shape larger than any file");
    numbers *= extent;
  }
  return std::vector<std::uint64_t>(extents.begin(), extents.end());
}

Result<std::shared_ptr<const NumberArray>> OpenHdf5File::array(const std::string& name) const {
  const auto lock = library_.lock();
  TRY(use());
  if (name.empty() || !exists(name))
    return bad_input(name_, fmt::format("has no data set {}", shown(name)),
                     "h5ls -r shows the names that it has");
  const Id opened = TRY(dataset(name));
  const NumberType type = TRY(type_of(opened, name));
  std::vector<std::uint64_t> shape = TRY(shape_of(opened, name));
  return std::make_shared<Hdf5Array>(shared_from_this(), fmt::format("{}: {}", name_, name), name, type,
                                     std::move(shape));
}

Result<void> Hdf5Array::read(std::uint64_t row, std::span<float> out) const {
  const Hdf5Library& library = file_->library();
  const auto lock = library.lock();
  const Id dataset = TRY(file_->dataset(dataset_));
  const Handle space(library.dataset_space(dataset), library.space_close);
  std::vector<Size> start(shape().size(), 0), count(shape().begin(), shape().end());
  start[0] = row, count[0] = 1;
  const Size numbers = out.size();
  const Handle memory(library.space_create(1, &numbers, nullptr), library.space_close);
  constexpr int kSet = 0;
  if (space.valid() && memory.valid() &&
      library.space_select(space.id(), kSet, start.data(), nullptr, count.data(), nullptr) >= 0 &&
      library.dataset_read(dataset, library.native_float(), memory.id(), space.id(), 0, out.data()) >= 0)
    return {};
  const std::string problem = library.problem();
  return bad_input(fmt::format("{}: sample {}", name(), row), "cannot be read: " + problem, hint_of(problem));
}

Result<std::vector<double>> Hdf5Array::read_all() const {
  const Hdf5Library& library = file_->library();
  std::vector<double> out(rows() * numbers_per_row());
  const auto lock = library.lock();
  const Id dataset = TRY(file_->dataset(dataset_));
  if (library.dataset_read(dataset, library.native_double(), 0, 0, 0, out.data()) >= 0) return out;
  const std::string problem = library.problem();
  return bad_input(name(), "cannot be read: " + problem, hint_of(problem));
}

Result<std::shared_ptr<const Hdf5File>> Hdf5File::open(const std::filesystem::path& path,
                                                       std::shared_ptr<Hdf5OpenFiles> together) {
  auto out = std::make_shared<OpenHdf5File>(path.string(), TRY(Hdf5Library::open()), std::move(together));
  const auto lock = out->library().lock();
  TRY(out->use());
  return out;
}

}  // namespace dlrun::runtime
