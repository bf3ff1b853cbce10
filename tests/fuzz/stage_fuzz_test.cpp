// Whatever comes as a stream of staged files, its reader answers with an Error that has words, or has written
// entries that stay below their item.
#include <doctest/doctest.h>

#include "src/agent/stage_in/checksum.hpp"
#include "src/agent/stage_in/stream_reader.hpp"
#include "tests/fuzz/mutate.hpp"

using namespace dlrun;
using namespace dlrun::agent;

namespace {

using Kind = StageEntry::Kind;

std::string content(const std::string& text) {
  Checksum sum;
  sum.add(text);
  std::string out = text;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<unsigned char>(sum.value() >> (8 * i)));
  return out;
}

std::string good_stream() {
  return encode({.kind = Kind::item}) + encode({.kind = Kind::folder, .mode = 0755}) +
         encode({.kind = Kind::file, .path = "a", .size = 3, .mode = 0644}) + content("abc") +
         encode({.kind = Kind::link, .path = "l", .target = "a"}) + encode({.kind = Kind::end}) +
         encode({.kind = Kind::stream_end});
}

class Watching final : public EntrySink {
 public:
  Result<void> entry(const StageEntry& entry) override {
    CHECK(is_path_below(entry.path));
    CHECK(entry.path.find("..") == std::string::npos);
    return {};
  }
  Result<void> bytes(std::string_view bytes) override {
    CHECK_FALSE(bytes.empty());
    return {};
  }
  Result<void> file_end() override { return {}; }
  Result<void> item_end() override { return {}; }
};

Result<void> read(const std::string& stream) {
  std::size_t used = 0;
  const auto next = [&](std::size_t maximum) -> Result<std::string_view> {
    const std::string_view out = std::string_view(stream).substr(used, std::min<std::size_t>(maximum, 7));
    used += out.size();
    return out;
  };
  return StreamReader(next, {0},
                      [](int) -> Result<std::unique_ptr<EntrySink>> {
                        return std::unique_ptr<EntrySink>(std::make_unique<Watching>());
                      })
      .run();
}

}  // namespace

TEST_CASE("a damaged stream of staged files is an error with words, or stays below its item") {
  REQUIRE(read(good_stream()));
  test::Mutator mutator({good_stream()},
                        {"..", "/", std::string(1, '\0'), "I", "D", "F", "L", "E", "Z", "\xff\xff\xff\xff"});
  int refused = 0;
  for (test::Texts texts; texts.next();) {
    const auto done = read(mutator.next());
    if (done) continue;
    ++refused;
    CHECK_FALSE(done.error().what.empty());
  }
  CHECK(refused > 0);
}
