#include "src/report/json_lines.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::report {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

}  // namespace

void take_lines(std::string& begun, std::string_view piece,
                const std::function<void(std::string_view)>& take) {
  std::size_t begin = 0, searched = begun.size();
  begun.append(piece);
  for (std::size_t end; (end = begun.find('\n', searched)) != std::string::npos; searched = begin) {
    take(std::string_view(begun).substr(begin, end - begin));
    begin = end + 1;
  }
  begun.erase(0, begin);
}

Result<LastLine> for_each_line(const std::filesystem::path& file,
                               const std::function<void(std::string_view)>& take) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return LastLine::whole;
  if (!fd) return fail(ErrorKind::io, "cannot read {}: {}", file.string(), system_reason(errno));
  std::array<char, kPiece> piece;
  std::string text;
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::io, "cannot read {}: {}", file.string(), system_reason(errno));
    if (got == 0) return text.empty() ? LastLine::whole : LastLine::torn;
    take_lines(text, {piece.data(), static_cast<std::size_t>(got)}, take);
  }
}

Result<JsonLines> read_json_lines(const std::filesystem::path& file) {
  JsonLines out;
  out.last = TRY(for_each_line(file, [&](std::string_view line) {
    auto value = parse_json(line, file.string());
    if (value && value->is_object())
      out.values.push_back(std::move(*value));
    else
      ++out.unreadable;
  }));
  return out;
}

}  // namespace dlrun::report
