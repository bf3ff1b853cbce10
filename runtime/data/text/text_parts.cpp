// See text_parts.hpp.
#include "runtime/data/text/text_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> unreadable(const fs::path& path, const std::error_code& problem) {
  return bad_input(path.string(), "cannot be read: " + problem.message());
}

Result<TextFile> text_file(const fs::path& path, const fs::path& folder) {
  std::error_code problem;
  const std::uint64_t bytes = fs::file_size(path, problem);
  if (problem) return unreadable(path, problem);
  const auto changed = fs::last_write_time(path, problem);
  if (problem) return unreadable(path, problem);
  return TextFile{
      .path = path,
      .name = folder.empty() ? path.filename().string() : path.lexically_relative(folder).string(),
      .bytes = bytes,
      .changed = changed.time_since_epoch().count()};
}

Result<bool> is_text(const fs::directory_entry& entry) {
  if (entry.path().extension() != ".txt") return false;
  std::error_code problem;
  const fs::file_status status = entry.status(problem);  // behind links
  if (status.type() == fs::file_type::not_found)
    return bad_input(entry.path().string(), "is a link to a file that is not there", "remove the link");
  if (problem && status.type() == fs::file_type::none) return unreadable(entry.path(), problem);
  return fs::is_regular_file(status);
}

// The folder that an iterator which is at this entry reads next: this one, or the one that it is in.
fs::path folder_of(const fs::directory_entry& entry) {
  std::error_code problem;
  return entry.is_directory(problem) && !entry.is_symlink(problem) ? entry.path()
                                                                   : entry.path().parent_path();
}

// The bytes [begin, end) of all texts behind each other, as ranges.
std::vector<TextRange> ranges_of(const std::vector<TextFile>& texts, const std::vector<std::size_t>& which,
                                 std::uint64_t begin, std::uint64_t end, std::uint64_t most) {
  std::vector<TextRange> out;
  std::uint64_t first = 0;  // of a text
  for (const std::size_t file : which) {
    const std::uint64_t from = begin > first ? begin - first : 0;
    const std::uint64_t to = std::min(texts[file].bytes, end > first ? end - first : 0);
    for (std::uint64_t at = from; at < to; at += most) out.push_back({file, at, std::min(to, at + most)});
    first += texts[file].bytes;
  }
  return out;
}

void add_shards(std::vector<TextShard>& out, const std::string& part, const std::vector<TextRange>& ranges,
                std::uint64_t most) {
  std::size_t number = 0;
  for (const TextRange& range : ranges) {
    const std::uint64_t bytes = range.end - range.begin;
    if (number == 0 || out.back().bytes + bytes > most)
      out.push_back({.name = fmt::format("{}-{:05}.tokens", part, number++), .ranges = {}});
    out.back().ranges.push_back(range);
    out.back().bytes += bytes;
  }
}

}  // namespace

bool is_for_validation(const TextFile& text) {
  constexpr std::array kNames = {"test", "val", "valid", "validation"};
  const std::string first = fs::path(text.name).begin()->stem().string();
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return first == name; });
}

Result<std::vector<TextFile>> find_texts(const fs::path& from) {
  std::vector<TextFile> out;
  std::error_code problem;
  if (fs::is_regular_file(from, problem)) {
    out.push_back(TRY(text_file(from, {})));
  } else {
    fs::path folder = from;  // which is read
    fs::recursive_directory_iterator at(from, problem), end;
    for (; !problem && at != end; at.increment(problem)) {
      folder = folder_of(*at);
      if (at->path().filename().string().starts_with('.'))
        at.disable_recursion_pending();
      else if (TRY(is_text(*at)))
        out.push_back(TRY(text_file(at->path(), from)));
    }
    if (problem) return unreadable(folder, problem);
  }
  std::erase_if(out, [](const TextFile& text) { return text.bytes == 0; });
  std::sort(out.begin(), out.end(), [](const TextFile& a, const TextFile& b) { return a.name < b.name; });
  if (out.empty())
    return bad_input(from.string(), "has no texts: files of more than 0 bytes that end in .txt");
  return out;
}

std::vector<TextShard> plan_text_shards(const std::vector<TextFile>& texts, double validation,
                                        std::uint64_t shard_bytes) {
  std::vector<std::size_t> trained, validated;
  std::uint64_t bytes = 0;  // of those that are trained
  for (std::size_t i = 0; i < texts.size(); ++i) {
    (is_for_validation(texts[i]) ? validated : trained).push_back(i);
    if (!is_for_validation(texts[i])) bytes += texts[i].bytes;
  }
  const bool is_cut = validated.empty();
  const auto left_out = static_cast<std::uint64_t>(std::ceil(validation * static_cast<double>(bytes)));
  const std::uint64_t border = is_cut ? bytes - std::min(bytes, left_out) : bytes;
  std::vector<TextShard> out;
  add_shards(out, "train", ranges_of(texts, trained, 0, border, shard_bytes), shard_bytes);
  add_shards(out, "validation",
             is_cut ? ranges_of(texts, trained, border, bytes, shard_bytes)
                    : ranges_of(texts, validated, 0, UINT64_MAX, shard_bytes),
             shard_bytes);
  return out;
}

}  // namespace dlrun::runtime
