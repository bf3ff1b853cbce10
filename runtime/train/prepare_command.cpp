#include "runtime/train/prepare_command.hpp"

#include <cstdio>
#include <map>

#include <unistd.h>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> wrong_option(std::string what, std::string hint = "dlrun-train --help") {
  return fail(Error{.kind = ErrorKind::usage, .what = std::move(what), .hint = std::move(hint)});
}

using Flags = std::map<std::string, std::string>;

Result<Flags> read_flags(const std::vector<std::string>& words) {
  static const std::vector<std::string> known{"--prepare",   "--into",    "--size",   "--list",
                                              "--test-list", "--classes", "--damaged"};
  Flags out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return wrong_option(fmt::format("unknown argument '{}'", words[i]), did_you_mean(name, known));
    if (equals == std::string::npos && i + 1 == words.size()) return wrong_option(name + " needs a value");
    const std::string value = equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
    if (value.empty()) return wrong_option(name + " needs a value");
    if (!out.emplace(name, value).second) return wrong_option(name + " is given twice");
  }
  return out;
}

Result<std::int64_t> side(const std::string& text) {
  const auto out = parse_integer(text, 1, 1 << 13);
  if (!out)
    return wrong_option(fmt::format("--size: '{}' is not a number of pixels", text),
                        "write --size 224 or 240x320");
  return *out;
}

// "224", or "240x320": height and width.
Result<void> read_size(const Flags& flags, ImageSpec& data) {
  const auto found = flags.find("--size");
  if (found == flags.end()) return {};
  const std::size_t cross = found->second.find('x');
  data.height = TRY(side(found->second.substr(0, cross)));
  data.width = cross == std::string::npos ? data.height : TRY(side(found->second.substr(cross + 1)));
  return {};
}

Result<void> read_lists(const Flags& flags, ImageSpec& data) {
  const auto value = [&](const char* name) {
    const auto found = flags.find(name);
    return found == flags.end() ? std::string() : found->second;
  };
  data.list = value("--list");
  data.test_list = value("--test-list");
  if (data.list.empty() && !data.test_list.empty()) return wrong_option("--test-list goes with --list");
  if (data.list.empty() != value("--classes").empty())
    return wrong_option("--list and --classes go together");
  if (data.list.empty()) return {};
  const auto classes = parse_integer(value("--classes"), 2, 65536);
  if (!classes)
    return wrong_option(fmt::format("--classes: '{}' is out of range [2, 65536]", value("--classes")));
  data.classes = *classes;
  return {};
}

}  // namespace

Result<PackJob> parse_prepare(const std::vector<std::string>& words) {
  const Flags flags = TRY(read_flags(words));
  PackJob out;
  out.data.train_share = 0.5;  // whether there is a test part is the training's business
  out.data.directory = flags.at("--prepare");
  TRY(read_size(flags, out.data));
  TRY(read_lists(flags, out.data));
  if (const auto into = flags.find("--into"); into != flags.end()) out.into = into->second;
  if (out.into.empty()) return wrong_option("--into DIR, the folder for packed images, is missing");
  if (const auto damaged = flags.find("--damaged"); damaged != flags.end()) {
    if (damaged->second != "drop" && damaged->second != "refuse")
      return wrong_option(fmt::format("--damaged: '{}' is neither refuse nor drop", damaged->second));
    out.data.damaged = damaged->second == "drop" ? Damaged::dropped : Damaged::refused;
  }
  return out;
}

Result<std::string> run_prepare(PackJob job) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal)
    job.progress = [](std::uint64_t done, std::uint64_t all) {
      fmt::print(stderr, "\rpacking {} of {} images ({} %)", done, all,
                 100 * done / std::max<std::uint64_t>(1, all));
    };
  const auto packed = pack_images(job);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!packed) return fail(packed.error());
  return fmt::format(
      "packed {} training and {} test images of {} x {} into {}{}", packed->train, packed->test,
      job.data.height, job.data.width, job.into.string(),
      packed->dropped == 0 ? "" : fmt::format("; {} damaged images were dropped", packed->dropped));
}

}  // namespace dlrun::runtime
