#include "src/agent/pmi/pmix_keys.hpp"

#include <cstring>

#include <dlfcn.h>
#include <pmix.h>

// libpmix 4.2 and newer have this function, older ones pmix_value_load: a build with the headers of either
// runs with both. The older one is looked up by name, as linkers do not keep a weak reference weak where they
// see its library.
extern "C" [[gnu::weak]] pmix_status_t PMIx_Info_load(pmix_info_t* info, const char* key, const void* value,
                                                      pmix_data_type_t type);

namespace dlrun::pmix {

namespace {

using ValueLoad = void(pmix_value_t* to, const void* value, pmix_data_type_t type);
ValueLoad* older_load() {
  return reinterpret_cast<ValueLoad*>(::dlsym(RTLD_DEFAULT, "pmix_value_load"));
}

}  // namespace

bool PmixKeys::can_load() {
  return PMIx_Info_load != nullptr || older_load() != nullptr;
}

PmixKeys::~PmixKeys() {
  for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
}

void PmixKeys::load(const char* key, const void* value, pmix_data_type_t type) {
  pmix_info_t info;
  std::memset(&info, 0, sizeof info);
  if (PMIx_Info_load != nullptr) {
    PMIx_Info_load(&info, key, value, type);
  } else {
    std::strncpy(info.key, key, PMIX_MAX_KEYLEN);
    older_load()(&info.value, value, type);
  }
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
