// See command_flags.hpp.
#include "runtime/train/command_flags.hpp"

#include <algorithm>
#include <filesystem>

#include "src/base/fields.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {

tl::unexpected<Error> wrong_option(std::string what, std::string hint) {
  return fail(Error{.kind = ErrorKind::usage, .what = std::move(what), .hint = std::move(hint)});
}

Result<Flags> read_flags(const std::vector<std::string>& words, const std::vector<std::string>& known) {
  Flags out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return wrong_option(fmt::format("unknown argument '{}'", words[i]), did_you_mean(name, known));
    if (equals == std::string::npos && i + 1 == words.size()) return wrong_option(name + " needs a value");
    const std::string value = equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
    if (value.empty()) return wrong_option(name + ": the text is empty");
    if (!out.emplace(name, value).second) return wrong_option(name + " is given twice");
  }
  return out;
}

namespace {

// What is said of the section that nobody wrote, of the flags that it is made of.
Error of_flags(Error error, const std::string& format) {
  constexpr std::string_view kSection = "train.data.", kUnknown = "unknown key '";
  error.kind = ErrorKind::usage;
  error.where.clear();
  if (error.what.starts_with(kUnknown)) {
    const std::string name =
        error.what.substr(kUnknown.size(), error.what.find('\'', kUnknown.size()) - kUnknown.size());
    error.what = fmt::format("--{} does not go with data of format {}", name, format);
    error.hint.clear();
    error.also.clear();
  }
  for (std::size_t at; (at = error.what.find(kSection)) != std::string::npos;)
    error.what.replace(at, kSection.size(), "--");
  if (error.what.starts_with("--format:")) error.what.replace(0, 8, "--from");
  return error;
}

}  // namespace

// The flags as text of a job file, which is read as one: names and refusals are the same.
Result<std::shared_ptr<const DataSource>> source_of(const Flags& flags, const std::string& folder,
                                                    SourceUse use, const Flags& defaults) {
  const auto from = flags.find("--from");
  const std::string format = from != flags.end()        ? from->second
                             : flags.contains("--list") ? "list"
                                                        : "images";
  // The arrays of a job may be in one file.
  const bool arrays = format == "numpy" || format == "hdf5";
  const char* const place = arrays && std::filesystem::is_regular_file(folder) ? "file" : "dir";
  Json section{{"format", format}, {place, folder}, {"train", 0.5}};
  if (use == SourceUse::as_it_is && (format == "images" || format == "list")) section["memory"] = "1KiB";
  for (const char* name : {"--list", "--test-list", "--classes", "--damaged", "--image-key", "--label-key",
                           "--first-label", "--channels", "--samples", "--labels", "--targets", "--axes"})
    if (const auto found = flags.find(name); found != flags.end())
      section[std::string(name + 2)] = found->second;
  std::string text;
  for (const auto& [key, value] : defaults)
    if (!section.contains(key)) text += fmt::format("{}: {}\n", key, value);
  for (const auto& [key, value] : section.items())
    text += fmt::format("{}: {}\n", key, dlrun::to_text(value));
  const yaml::Node node = TRY(yaml::parse(text, "the command line"));
  yaml::Fields fields = TRY(yaml::Fields::of(node, "train.data"));
  auto spec = read_data_source(fields);
  for (const auto& [key, value] : defaults) fields.known(key);
  if (!spec) return fail(of_flags(std::move(spec).error(), format));
  if (auto known = fields.finish(); !known) return fail(of_flags(std::move(known).error(), format));
  return spec->source;
}

}  // namespace dlrun::runtime
