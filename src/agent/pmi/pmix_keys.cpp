#include "src/agent/pmi/pmix_keys.hpp"

#include <cstring>

#include <pmix.h>

namespace dlrun::pmix {

PmixKeys::~PmixKeys() {
  for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
}

void PmixKeys::load(const char* key, const void* value, pmix_data_type_t type) {
  pmix_info_t info;
  std::memset(&info, 0, sizeof info);
  PMIx_Info_load(&info, key, value, type);
  infos_.push_back(info);
}

void PmixKeys::text(const char* key, const std::string& value) {
  load(key, value.c_str(), PMIX_STRING);
}

void PmixKeys::regex(const char* key, const std::string& value) {
  load(key, value.c_str(), PMIX_REGEX);
}

void PmixKeys::number(const char* key, std::uint32_t value) {
  load(key, &value, PMIX_UINT32);
}

void PmixKeys::small_number(const char* key, std::uint16_t value) {
  load(key, &value, PMIX_UINT16);
}

void PmixKeys::rank(const char* key, pmix_rank_t value) {
  load(key, &value, PMIX_PROC_RANK);
}

void PmixKeys::yes_no(const char* key, bool value) {
  load(key, &value, PMIX_BOOL);
}

void PmixKeys::array(const char* key, PmixKeys& inner) {
  pmix_data_array_t array;
  array.type = PMIX_INFO;
  array.size = inner.size();
  array.array = inner.data();
  load(key, &array, PMIX_DATA_ARRAY);
}

}  // namespace dlrun::pmix
