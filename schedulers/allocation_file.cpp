// See allocation_file.hpp.
#include "schedulers/allocation_file.hpp"

#include "src/base/json.hpp"
#include "src/base/named_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

Result<Allocation> read(const std::filesystem::path& file) {
  const std::string text = TRY(read_named_file(file));
  if (trim(text).empty()) return fail(ErrorKind::allocation, "{}: the file is empty", file.string());
  return allocation_from_json(TRY(parse_json(text, file.string())), file.string());
}

}  // namespace

Result<Allocation> allocation_from_file(const std::filesystem::path& file) {
  auto out = read(file);
  if (!out) out.error().kind = ErrorKind::allocation;
  return out;
}

}  // namespace dlrun
