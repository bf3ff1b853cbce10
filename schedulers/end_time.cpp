#include "schedulers/end_time.hpp"

namespace dlrun {

tl::unexpected<Error> no_end_told(std::string_view program, std::string_view job_id) {
  return fail(ErrorKind::allocation, "{} does not report the end of job {}", program, job_id);
}

}  // namespace dlrun
