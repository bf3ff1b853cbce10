// The last words of a rank to a PMI-1 launcher, for a rank that has to leave its MPI without MPI_Finalize.
// Only called when no further call of the MPI is made, since the library owns the descriptor until then.
#pragma once

#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::runtime {

// On descriptor number `pmi_fd`: the launcher's barrier, so that no rank is gone while another still reads
// from it, then "finalize". The descriptor stays open.
Result<void> pmi_finalize(std::string_view pmi_fd);

}  // namespace dlrun::runtime
