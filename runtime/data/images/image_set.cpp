#include "runtime/data/images/image_set.hpp"

#include <algorithm>

#include "runtime/data/short_list.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> bad_folder(const fs::path& where, std::string what, std::string hint = {}) {
  return fail(Error{
      .kind = ErrorKind::input, .what = std::move(what), .where = where.string(), .hint = std::move(hint)});
}

enum class Want { folders, files };

// What a Mac puts beside folders into an archive.
constexpr std::string_view kMacFolder = "__MACOSX";

// Names in a folder, in order; those with a leading dot are not seen, as everywhere.
Result<std::vector<std::string>> names_in(const fs::path& folder, Want want) {
  std::error_code problem;
  std::vector<std::string> out;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.') || name == kMacFolder) continue;
    if (at->is_directory(problem) == (want == Want::folders)) out.push_back(name);
  }
  if (problem) return bad_folder(folder, fmt::format("cannot be read: {}", problem.message()));
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<ImageFile>> read_image_part(const fs::path& folder,
                                               const std::vector<std::string>& classes) {
  std::vector<ImageFile> out;
  for (const std::string& name : TRY(names_in(folder, Want::folders))) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name)
      return bad_folder(folder / name, fmt::format("class '{}' has no training folder", name),
                        did_you_mean(name, classes));
    for (const std::string& file : TRY(names_in(folder / name, Want::files)))
      out.push_back({folder / name / file, static_cast<std::uint16_t>(found - classes.begin())});
  }
  return out;
}

// A folder that is no class would be one, and change the numbers of the others.
Result<void> check_classes(const fs::path& train, const ImageSet& set) {
  const std::vector<std::string> empty = classes_without_images(set);
  if (empty.empty()) return {};
  return bad_folder(train,
                    fmt::format("{} of {} class folders {} no training image: {}", empty.size(),
                                set.classes.size(), empty.size() == 1 ? "has" : "have", short_list(empty)),
                    "add images, or remove folders that are not classes");
}

Result<ImageSet> find_folders(const fs::path& directory) {
  std::error_code problem;
  const bool is_folder = fs::is_directory(directory, problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    return bad_folder(directory, "cannot be read: " + problem.message());
  if (!is_folder)
    return bad_folder(directory, "is not a folder",
                      "data.dir of the job file must be the folder with a folder for each class");
  const bool parts = fs::is_directory(directory / "train", problem);
  const fs::path train = parts ? directory / "train" : directory;
  ImageSet out;
  out.classes = TRY(names_in(train, Want::folders));
  if (out.classes.size() < 2 || out.classes.size() > kMaxClasses)
    return bad_folder(
        train,
        fmt::format("has {} class folders, which is out of range [2, {}]", out.classes.size(), kMaxClasses),
        "each class needs a folder with its images");
  out.train = TRY(read_image_part(train, out.classes));
  if (!out.train.empty()) TRY(check_classes(train, out));
  for (const char* name : {"test", "val"})
    if (parts && out.test.empty() && fs::is_directory(directory / name, problem))
      out.test = TRY(read_image_part(directory / name, out.classes));
  return out;
}

Result<ImageSet> find_listed(const ImageSpec& spec) {
  const auto read = [&](const fs::path& file) -> Result<std::vector<ImageFile>> {
    if (file.empty()) return std::vector<ImageFile>{};
    return read_image_list(TRY(read_regular_file(file)),
                           spec.directory.empty() ? file.parent_path() : spec.directory, spec.classes,
                           file.string());
  };
  ImageSet out;
  for (std::int64_t i = 0; i < spec.classes; ++i) out.classes.push_back(std::to_string(i));
  out.train = TRY(read(spec.list));
  out.test = TRY(read(spec.test_list));
  return out;
}

}  // namespace

std::vector<std::string> classes_without_images(const ImageSet& set) {
  std::vector<char> seen(set.classes.size());
  for (const ImageFile& file : set.train) seen[file.label] = 1;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] == 0) out.push_back(set.classes[i]);
  return out;
}

Result<std::vector<ImageFile>> read_image_list(std::string_view text, const fs::path& folder,
                                               std::int64_t classes, const std::string& name) {
  std::vector<ImageFile> out;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::string where = fmt::format("{}:{}", name, ++number);
    const std::string_view words = trim(line);
    if (words.empty()) continue;
    // The label is the last word, so that paths may have blanks.
    const std::size_t blank = words.find_last_of(" \t");
    const auto label = blank == std::string_view::npos
                           ? fail(Error{})
                           : parse_integer(std::string(words.substr(blank + 1)), 0, classes - 1);
    if (!label)
      return bad_folder(
          where, fmt::format("'{}' does not end with a class in [0, {}]", words.substr(0, 200), classes - 1),
          "a line is a path, a blank and a class number; data.classes sets the number of classes");
    const std::string_view path = trim(words.substr(0, blank));
    if (path.find('\0') != std::string_view::npos) return bad_folder(where, "the path has a NUL character");
    out.push_back({folder / path, static_cast<std::uint16_t>(*label)});
  }
  return out;
}

Result<ImageSet> find_images(const ImageSpec& spec) {
  ImageSet out = TRY(spec.is_list() ? find_listed(spec) : find_folders(spec.directory));
  const fs::path& where = spec.place();
  if (out.train.empty()) return bad_folder(where, "there are no training images");
  if (out.test.empty() && spec.train_share == 1)
    return bad_folder(where, "there are no test images",
                      spec.is_list() ? "set a test-list, or a validation split with train: 0.9"
                                     : "add a folder test, or set a validation split with train: 0.9");
  return out;
}

}  // namespace dlrun::runtime
