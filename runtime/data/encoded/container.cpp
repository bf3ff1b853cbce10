// See container.hpp.
#include "runtime/data/encoded/container.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/data/encoded/part_files.hpp"
#include "runtime/data/short_list.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

struct OneFile {
  FoundSamples found;
  Result<void> result;
};

// Damage ends one file; what was found before it is kept where damage is dropped.
void read_one(const fs::path& path, const ContainerSpec& spec, const Container& container, OneFile& out) {
  const auto mapped = MappedFile::open(path);
  out.result = mapped ? container.find(*mapped, spec, out.found) : tl::unexpected(mapped.error());
  if (out.result || spec.damaged == Damaged::refused) return;
  out.found.dropped.push_back(out.result.error().text());
  out.result = {};
}

std::vector<OneFile> read_side_by_side(const std::vector<fs::path>& paths, const ContainerSpec& spec,
                                       const Container& container) {
  std::vector<OneFile> out(paths.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) read_one(paths[i], spec, container, out[i]);
  };
  std::vector<std::jthread> helpers;
  const std::size_t threads = std::min<std::size_t>(paths.size(), std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  return out;
}

class ContainerSource final : public DataSource {
 public:
  ContainerSource(ContainerSpec spec, const Container& container)
      : spec_(std::move(spec)), container_(container) {}

  std::size_t channels() const override { return static_cast<std::size_t>(spec_.channels); }
  Result<InputShape> probe() const override {
    TRY(files());
    return InputShape{spec_.channels, spec_.height, spec_.width, spec_.classes};
  }
  Result<InputShape> check() const override {
    TRY(load(0));
    return probe();
  }
  Result<DataParts> load(std::uint64_t) const override {
    const PartFiles found = TRY(files());
    DataParts out;
    out.notes = unused_note(found);
    out.train = TRY(read_container(found.train, spec_, container_, out.notes));
    out.test = TRY(read_container(found.test, spec_, container_, out.notes));
    if (out.train.count == 0) return bad_input(place(), "has no training samples");
    out.classes = TRY(class_names());
    return out;
  }
  bool keeps_images() const override { return true; }
  std::string place() const override { return spec_.directory.string(); }

 private:
  // A line per class in classes.txt, as --prepare writes it; empty without one.
  Result<std::vector<std::string>> class_names() const {
    const fs::path path = spec_.directory / "classes.txt";
    std::error_code problem;
    std::vector<std::string> out;
    if (!fs::exists(path, problem)) return out;
    const std::string text = TRY(read_regular_file(path));
    for (const std::string& line : split(trim(text), '\n')) out.push_back(line);
    if (std::ssize(out) == spec_.classes) return out;
    return bad_input(path.string(),
                     fmt::format("has {} lines, and there are {} classes", out.size(), spec_.classes));
  }
  Result<PartFiles> files() const {
    PartFiles out = TRY(find_part_files(spec_.directory, container_.accepts));
    if (out.train.empty()) return bad_input(place(), fmt::format("has no {}", container_.files));
    if (out.test.empty() && spec_.train_share == 1)
      return bad_input(place(), fmt::format("has no {} with test or val in the name", container_.files),
                       "add them, or set a validation split with train: 0.9");
    return out;
  }
  ContainerSpec spec_;
  const Container& container_;
};

}  // namespace

Result<std::uint16_t> class_of(std::int64_t label, const ContainerSpec& spec) {
  const std::int64_t number = label - spec.first_label;
  if (number >= 0 && number < spec.classes) return static_cast<std::uint16_t>(number);
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("label {} is out of range [{}, {}]", label, spec.first_label,
                                spec.first_label + spec.classes - 1),
            .hint = "data.classes is the number of classes, data.first-label the label of the first"});
}

Result<Dataset> read_container(const std::vector<fs::path>& paths, const ContainerSpec& spec,
                               const Container& container, std::vector<std::string>& notes) {
  Dataset out;
  out.shape = {spec.channels, spec.height, spec.width, spec.classes};
  out.damaged = spec.damaged;
  const auto encoded = std::make_shared<EncodedSamples>();
  std::vector<std::string> dropped;
  std::vector<OneFile> files = read_side_by_side(paths, spec, container);
  for (std::size_t i = 0; i < files.size(); ++i) {
    TRY(std::move(files[i].result));
    for (const auto& [offset, length, label] : files[i].found.samples) {
      encoded->extents.push_back({static_cast<std::uint32_t>(i), length, offset});
      out.labels.push_back(label);
    }
    dropped.insert(dropped.end(), files[i].found.dropped.begin(), files[i].found.dropped.end());
  }
  if (!dropped.empty())
    notes.push_back(fmt::format("{} damaged places are left out: {}", dropped.size(), short_list(dropped)));
  encoded->files = TRY(FileSet::open(paths));
  if (container.unwrap != nullptr) encoded->unwrap = container.unwrap(spec);
  out.count = out.labels.size();
  out.encoded = encoded;
  return out;
}

Result<ContainerSpec> read_container_section(yaml::Fields& data, double train_share) {
  ContainerSpec out{.train_share = train_share};
  out.directory = TRY(data.text("dir"));
  out.classes = TRY(yaml::as_integer(*TRY(data.require("classes")), data.path("classes"), 2, 65536));
  out.channels = TRY(data.integer_or("channels", out.channels, 1, 3));
  if (out.channels == 2) return yaml::error_at(*data.find("channels"), "train.data.channels must be 1 or 3");
  out.first_label = TRY(data.integer_or("first-label", 0, -1'000'000'000, 1'000'000'000));
  const ImageSize size = TRY(read_image_size(data));
  out.height = size.height;
  out.width = size.width;
  out.damaged = TRY(read_damaged(data));
  return out;
}

std::shared_ptr<const DataSource> make_container_source(ContainerSpec spec, const Container& container) {
  return std::make_shared<ContainerSource>(std::move(spec), container);
}

}  // namespace dlrun::runtime
