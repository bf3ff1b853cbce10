// See lmdb_writer.hpp.
#include "runtime/data/encoded/lmdb_writer.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPage = 4096, kHeader = 16;
constexpr std::size_t kMaxNode = 2038;  // two of them fit a page: liblmdb's rule
constexpr std::uint64_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8, kBigValue = 1, kNone = UINT64_MAX;

std::string little(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0');
  return out;
}

std::size_t even(std::size_t bytes) {
  return (bytes + 1) / 2 * 2;
}

// What the nodes take of a page, their places included.
std::size_t size_of(const std::vector<std::string>& nodes) {
  std::size_t sum = kHeader;
  for (const std::string& node : nodes) sum += 2 + even(node.size());
  return sum;
}

// Places from the front, nodes from the back.
std::string page_of(std::uint64_t number, std::uint64_t flags, const std::vector<std::string>& nodes) {
  std::string out(kPage, '\0');
  std::size_t lower = kHeader, upper = kPage;
  for (const std::string& node : nodes) {
    upper -= even(node.size());
    out.replace(upper, node.size(), node);
    out.replace(lower, 2, little(upper, 2));
    lower += 2;
  }
  out.replace(0, kHeader,
              little(number, 8) + little(0, 2) + little(flags, 2) + little(lower, 2) + little(upper, 2));
  return out;
}

std::string node_of(std::uint64_t low, std::uint64_t flags, std::string_view key, std::string_view data) {
  return little(low, 4) + little(flags, 2) + little(key.size(), 2) + std::string(key) + std::string(data);
}

}  // namespace

std::uint64_t LmdbWriter::next_page() const {
  return file_.size() / kPage;
}

std::uint64_t LmdbWriter::add_long_value(std::string_view value) {
  const std::uint64_t number = next_page(), pages = (kHeader + value.size() + kPage - 1) / kPage;
  file_ += little(number, 8) + little(0, 2) + little(kOverflow, 2) + little(pages, 4);
  file_ += value;
  file_.resize((number + pages) * kPage, '\0');
  long_pages_ += pages;
  return number;
}

void LmdbWriter::add(std::string_view key, std::string_view value) {
  std::string node = node_of(value.size(), 0, key, value);
  if (node.size() > kMaxNode) node = node_of(value.size(), kBigValue, key, little(add_long_value(value), 8));
  if (size_of(nodes_) + 2 + even(node.size()) > kPage) end_leaf();
  if (nodes_.empty()) first_key_ = key;
  nodes_.push_back(std::move(node));
  ++entries_;
}

void LmdbWriter::end_leaf() {
  const std::uint64_t number = next_page();
  file_ += page_of(number, kLeaf, nodes_);
  leaves_.push_back({first_key_, number});
  nodes_.clear();
}

// A branch has two pages below it at least. The key of its first is empty: nothing is lower.
std::vector<LmdbWriter::Page> LmdbWriter::level_above(const std::vector<Page>& below) {
  std::vector<Page> out;
  for (std::size_t at = 0; at < below.size();) {
    std::vector<std::string> nodes;
    const std::size_t first = at;
    for (; at < below.size(); ++at) {
      const std::uint64_t page = below[at].number;
      std::string node = node_of(page & 0xffffffffU, page >> 32, at == first ? "" : below[at].key, "");
      if (size_of(nodes) + 2 + even(node.size()) > kPage) break;
      nodes.push_back(std::move(node));
    }
    if (below.size() - at == 1 && nodes.size() > 2) {
      nodes.pop_back();
      --at;
    }
    const std::uint64_t number = next_page();
    file_ += page_of(number, kBranch, nodes);
    out.push_back({below[first].key, number});
    ++branches_;
  }
  return out;
}

// The first header is of an empty database, the second, which is newer, of this one.
void LmdbWriter::write_headers(std::uint64_t root, std::uint64_t depth) {
  constexpr std::uint64_t magic = 0xBEEFC0DE, version = 1, integer_keys = 8;
  const std::string free_pages =
      little(kPage, 4) + little(integer_keys, 2) + little(0, 2 + 4 * 8) + little(kNone, 8);
  for (std::uint64_t header = 0; header < 2; ++header) {
    const bool empty = header == 0;
    const auto count = [&](std::uint64_t value) { return little(empty ? 0 : value, 8); };
    const std::string table = little(0, 4 + 2) + little(empty ? 0 : depth, 2) + count(branches_) +
                              count(leaves_.size()) + count(long_pages_) + count(entries_) +
                              little(empty ? kNone : root, 8);
    const std::string page = little(header, 8) + little(0, 2) + little(kMeta, 2) + little(0, 4) +
                             little(magic, 4) + little(version, 4) + little(0, 8) + little(file_.size(), 8) +
                             free_pages + table + little(empty ? 1 : next_page() - 1, 8) + little(header, 8);
    file_.replace(header * kPage, page.size(), page);
  }
}

std::string LmdbWriter::finish() && {
  if (!nodes_.empty()) end_leaf();
  std::vector<Page> level = leaves_;
  std::uint64_t depth = level.empty() ? 0 : 1;
  for (; level.size() > 1; ++depth) level = level_above(level);
  write_headers(level.empty() ? kNone : level[0].number, depth);
  return std::move(file_);
}

}  // namespace dlrun::runtime
