// PmixKeys: a list of PMIx infos and its memory. Only for the plug-in: it includes libpmix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pmix_server.h>

namespace dlrun::pmix {

class PmixKeys {
 public:
  PmixKeys() = default;
  PmixKeys(const PmixKeys&) = delete;
  PmixKeys& operator=(const PmixKeys&) = delete;
  ~PmixKeys();

  static bool can_load();  // whether the loaded libpmix has a function for it

  void text(const char* key, const std::string& value);
  void regex(const char* key, const std::string& value);  // as PMIx_generate_regex or _ppn made it
  void number(const char* key, std::uint32_t value);
  void small_number(const char* key, std::uint16_t value);
  void rank(const char* key, pmix_rank_t value);
  void yes_no(const char* key, bool value);
  void array(const char* key, PmixKeys& inner);  // a copy

  pmix_info_t* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  void load(const char* key, const void* value, pmix_data_type_t type);
  std::vector<pmix_info_t> infos_;
};

}  // namespace dlrun::pmix
