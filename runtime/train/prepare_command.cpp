#include "runtime/train/prepare_command.hpp"

#include <cstdio>
#include <thread>

#include <unistd.h>

#include "runtime/train/command_flags.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

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
  if (data.list.empty() && !data.test_list.empty()) return wrong_option("--test-list needs --list");
  if (data.list.empty() != value("--classes").empty())
    return wrong_option("--list and --classes need each other");
  if (data.list.empty()) return {};
  const auto classes = parse_integer(value("--classes"), 2, 65536);
  if (!classes)
    return wrong_option(fmt::format("--classes: '{}' is out of range [2, 65536]", value("--classes")));
  data.classes = *classes;
  return {};
}

}  // namespace

namespace {

// What --as says; pixels, which are decoded, where it is not given.
bool repacks(const Flags& flags) {
  const auto as = flags.find("--as");
  return as != flags.end() && as->second != "pixels";
}

Result<PackJob> read_pack(const Flags& flags) {
  for (const char* other :
       {"--from", "--image-key", "--label-key", "--first-label", "--channels", "--shard-size"})
    if (flags.contains(other))
      return wrong_option(fmt::format("{} needs --as shards, webdataset, tfrecord or lmdb", other));
  PackJob out;
  out.data.train_share = 0.5;  // whether there is a test part is the training's business
  out.data.directory = flags.at("--prepare");
  TRY(read_size(flags, out.data));
  TRY(read_lists(flags, out.data));
  out.into = flags.at("--into");
  if (const auto damaged = flags.find("--damaged"); damaged != flags.end()) {
    if (damaged->second != "drop" && damaged->second != "refuse")
      return wrong_option(fmt::format("--damaged: '{}' is neither refuse nor drop", damaged->second));
    out.data.damaged = damaged->second == "drop" ? Damaged::dropped : Damaged::refused;
  }
  return out;
}

Result<std::uint64_t> read_shard_size(const Flags& flags, std::uint64_t otherwise) {
  const auto size = flags.find("--shard-size");
  if (size == flags.end()) return otherwise;
  const auto bytes = parse_size(size->second);
  if (!bytes || *bytes == 0)
    return wrong_option(fmt::format("--shard-size: '{}' is not a size", size->second), "write 128MiB");
  return *bytes;
}

// bytes, a folder with vocab.json and merges.txt, or a tokenizer.json.
Result<Tokenizer> read_tokenizer(const std::string& which) {
  if (which == "bytes") return Tokenizer::of_bytes();
  std::error_code problem;
  const std::vector<std::string> names = {"bytes"};
  if (!std::filesystem::exists(which, problem) && !nearest(which, names).empty())
    return wrong_option(fmt::format("--tokens: no file or folder '{}'", which), did_you_mean(which, names));
  if (!std::filesystem::is_regular_file(which, problem)) return Tokenizer::open(which);
  return Tokenizer::parse(TRY(read_regular_file(which)), which);
}

constexpr std::uint64_t kLeastOfText = std::uint64_t{64} << 10;  // in a token file

Result<TextJob> read_text(const Flags& flags) {
  for (const char* other : {"--size", "--list", "--test-list", "--classes", "--damaged", "--as", "--from",
                            "--image-key", "--label-key", "--first-label", "--channels"})
    if (flags.contains(other)) return wrong_option(fmt::format("{} is for images, not for --tokens", other));
  TextJob out;
  out.from = flags.at("--prepare");
  out.into = flags.at("--into");
  out.tokenizer = std::make_shared<const Tokenizer>(TRY(read_tokenizer(flags.at("--tokens"))));
  out.shard_bytes = TRY(read_shard_size(flags, out.shard_bytes));
  if (out.shard_bytes < kLeastOfText)
    return wrong_option(
        fmt::format("--shard-size: '{}' is less than 64KiB of text", flags.at("--shard-size")));
  out.workers = std::max(1U, std::thread::hardware_concurrency());
  if (const auto share = flags.find("--validation"); share != flags.end()) {
    const auto number = parse_number(share->second);
    if (!number || *number < 0 || *number > 0.9)
      return wrong_option(fmt::format("--validation: '{}' is out of range [0, 0.9]", share->second));
    out.validation = *number;
  }
  return out;
}

Result<RepackJob> read_repack(const Flags& flags) {
  RepackJob out;
  if (flags.contains("--size"))
    return wrong_option("--size needs --as pixels: otherwise images keep their sizes");
  const std::string& as = flags.at("--as");
  std::vector<std::string> names{"pixels"};
  for (const ShardWriter& writer : shard_writers()) {
    names.emplace_back(writer.name);
    if (writer.name == as) out.writer = &writer;
  }
  if (out.writer == nullptr)
    return wrong_option(fmt::format("--as: unknown value '{}'", as), did_you_mean(as, names));
  out.shard_bytes = TRY(read_shard_size(flags, out.shard_bytes));
  auto source = source_of(flags, flags.at("--prepare"), SourceUse::as_it_is);
  if (!source) return tl::unexpected(std::move(source).error());
  if (!(*source)->keeps_images())
    return wrong_option(fmt::format("--from: {} has no encoded images", flags.at("--from")));
  out.source = *source;
  out.into = flags.at("--into");
  out.workers = std::max(1U, std::thread::hardware_concurrency());
  return out;
}

template <class Job>
Job with_progress(Job job) {
  job.progress = [](std::uint64_t done, std::uint64_t all) {
    constexpr bool is_text = std::is_same_v<Job, TextJob>;
    fmt::print(stderr, "\r{} {} of {} {} ({} %)", is_text ? "tokenizing" : "packing", done, all,
               is_text ? "bytes" : "images", 100 * done / std::max<std::uint64_t>(1, all));
  };
  return job;
}

std::string and_dropped(std::uint64_t count) {
  return count == 0 ? "" : fmt::format("; {} damaged images were dropped", count);
}

Result<std::string> pack(const PackJob& job) {
  const Packed packed = TRY(pack_images(job));
  return fmt::format("packed {} training and {} test images of {} x {} into {}{}", packed.train, packed.test,
                     job.data.height, job.data.width, job.into.string(), and_dropped(packed.dropped));
}

Result<std::string> tokenize(const TextJob& job) {
  const Tokenized done = TRY(tokenize_texts(job));
  std::string out = fmt::format(
      "wrote {} training and {} validation tokens of {} {} into {}: {} {}, a vocabulary of {}", done.train,
      done.validation, done.texts, done.texts == 1 ? "text" : "texts", job.into.string(), done.files,
      done.files == 1 ? "file" : "files", job.tokenizer->vocabulary());
  if (done.kept > 0) out += fmt::format("; {} of them were there from an earlier run", done.kept);
  for (const std::string& note : done.notes) out += "\n  " + note;
  return out;
}

Result<std::string> write_shards(const RepackJob& job) {
  const Repacked packed = TRY(repack(job));
  std::string out =
      fmt::format("packed {} training and {} test images into {}: {} {} of format {}{}", packed.train,
                  packed.test, job.into.string(), packed.shards, packed.shards == 1 ? "file" : "files",
                  job.writer->name, and_dropped(packed.dropped.size()));
  if (packed.kept > 0) out += fmt::format("; {} of them were there from an earlier run", packed.kept);
  for (const std::string& why : packed.dropped) out += "\n  " + why;
  return out;
}

}  // namespace

Result<PrepareJob> parse_prepare(const std::vector<std::string>& words) {
  static const std::vector<std::string> known{"--prepare",   "--into",       "--size",      "--list",
                                              "--test-list", "--classes",    "--damaged",   "--as",
                                              "--from",      "--image-key",  "--label-key", "--first-label",
                                              "--channels",  "--shard-size", "--tokens",    "--validation"};
  const Flags flags = TRY(read_flags(words, known));
  if (!flags.contains("--into")) return wrong_option("--into DIR, the new folder, is missing");
  if (flags.contains("--tokens")) return TRY(read_text(flags));
  if (flags.contains("--validation")) return wrong_option("--validation needs --tokens");
  if (repacks(flags)) return TRY(read_repack(flags));
  return TRY(read_pack(flags));
}

Result<std::string> run_prepare(const PrepareJob& job) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  auto done = std::visit(
      [&](const auto& each) {
        const auto told = terminal ? with_progress(each) : each;
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, PackJob>)
          return pack(told);
        else if constexpr (std::is_same_v<std::decay_t<decltype(each)>, TextJob>)
          return tokenize(told);
        else
          return write_shards(told);
      },
      job);
  if (terminal) fmt::print(stderr, "\r\033[K");
  return done;
}

}  // namespace dlrun::runtime
