// TFRecord framing as TensorBoard reads it: length, its masked CRC-32C, the data, its masked CRC-32C. The
// reader refuses a record whose length cannot be trusted before it looks any further.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/crc32c.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

std::string frame_record(std::string_view data);
/// All records of a file's content; an Error names the offset of the first bad one.
Result<std::vector<std::string_view>> parse_records(std::string_view content, const std::string& name);

}  // namespace dlrun::runtime
