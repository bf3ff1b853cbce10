#include "src/agent/stage_in/stream_reader.hpp"

#include "src/agent/stage_in/checksum.hpp"

namespace dlrun::agent {
namespace {

using Kind = StageEntry::Kind;

tl::unexpected<Error> malformed(std::string what) {
  return fail(Error{.kind = ErrorKind::internal, .what = "the stream of what is staged " + std::move(what)});
}

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return out;
}

}  // namespace

Result<std::string> StreamReader::take(std::size_t size) {
  std::string out;
  while (out.size() < size) {
    const std::string_view bytes = TRY(next_(size - out.size()));
    if (bytes.empty()) return fail(ErrorKind::lost, "the stream of what is staged ended early");
    out += bytes;
  }
  return out;
}

Result<StageEntry> StreamReader::take_entry() {
  StageHead head = TRY(decode_stage_head(TRY(take(kStageHeadSize))));
  head.entry.path = TRY(take(head.path_size));
  head.entry.target = TRY(take(head.target_size));
  if (!is_path_below(head.entry.path)) return malformed("has a path that leaves its item");
  if (head.entry.target.find('\0') != std::string::npos ||
      (head.entry.kind == Kind::link) == head.entry.target.empty())
    return malformed("has a link that leads nowhere, or a target of what is no link");
  return std::move(head.entry);
}

Result<void> StreamReader::read_file(const StageEntry& entry, EntrySink* sink) {
  Checksum sum;
  for (std::uint64_t left = entry.size; left > 0;) {
    const std::string_view bytes =
        TRY(next_(static_cast<std::size_t>(std::min<std::uint64_t>(left, SIZE_MAX))));
    if (bytes.empty()) return fail(ErrorKind::lost, "the stream of what is staged ended early");
    sum.add(bytes);
    if (sink != nullptr) TRY(sink->bytes(bytes));
    left -= bytes.size();
  }
  if (number_of(TRY(take(sizeof(std::uint64_t)))) != sum.value())
    return fail(ErrorKind::lost, "'{}' came with another checksum than it was read with", entry.path);
  if (sink != nullptr) TRY(sink->file_end());
  return {};
}

Result<void> StreamReader::read_item(EntrySink* sink) {
  for (bool first = true;; first = false) {
    const StageEntry entry = TRY(take_entry());
    if (entry.kind == Kind::end && !first) return sink != nullptr ? sink->item_end() : Result<void>();
    if (entry.kind == Kind::item || entry.kind == Kind::stream_end || entry.kind == Kind::end)
      return malformed("has a record out of order");
    if (entry.path.empty() != first) return malformed("has an item without a beginning, or with two");
    if (first && entry.kind == Kind::link) return malformed("has an item that is a link");
    if (sink != nullptr) TRY(sink->entry(entry));
    if (entry.kind == Kind::file) TRY(read_file(entry, sink));
  }
}

Result<void> StreamReader::run() {
  for (const int item : items_) {
    const StageEntry start = TRY(take_entry());
    if (start.kind != Kind::item || start.size != static_cast<std::uint64_t>(item))
      return malformed(fmt::format("does not begin with item {}", item));
    const std::unique_ptr<EntrySink> sink = TRY(sink_of_(item));
    TRY(read_item(sink.get()));
  }
  if (TRY(take_entry()).kind != Kind::stream_end) return malformed("goes on behind its last item");
  return {};
}

}  // namespace dlrun::agent
