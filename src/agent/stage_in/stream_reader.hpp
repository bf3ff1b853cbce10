// StreamReader: takes a stream of staged entries apart and gives them to who writes them. It refuses
// records that are damaged or out of order, paths that leave their item, items that
// nobody asked for. A content whose checksum is another one is an Error once it has been given.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "src/agent/stage_in/stage_entry.hpp"

namespace dlrun::agent {

/// Who gets the entries of one item, in order. A file's bytes follow its entry, and then file_end().
class EntrySink {
 public:
  virtual ~EntrySink() = default;
  virtual Result<void> entry(const StageEntry& entry) = 0;
  virtual Result<void> bytes(std::string_view bytes) = 0;
  virtual Result<void> file_end() = 0;
  virtual Result<void> item_end() = 0;
};

class StreamReader {
 public:
  /// The next bytes, up to `maximum`; empty at the stream's end. They stay until the next call.
  using Next = std::function<Result<std::string_view>(std::size_t maximum)>;
  /// The sink of an item; null where nothing of it is wanted here.
  using SinkOf = std::function<Result<std::unique_ptr<EntrySink>>(int item)>;

  /// `items`: those that are sent, in this order.
  StreamReader(Next next, std::vector<int> items, SinkOf sink_of)
      : next_(std::move(next)), items_(std::move(items)), sink_of_(std::move(sink_of)) {}

  /// To the record of the stream's end. An Error (lost) where the bytes end before it.
  Result<void> run();

 private:
  Result<std::string> take(std::size_t size);
  Result<StageEntry> take_entry();
  Result<void> read_item(EntrySink* sink);
  Result<void> read_file(const StageEntry& entry, EntrySink* sink);

  Next next_;
  std::vector<int> items_;
  SinkOf sink_of_;
};

}  // namespace dlrun::agent
