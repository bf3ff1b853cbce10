// The names under which the HDF5 library is looked for: the trainer loads it, and --version says whether it
// is here. It is the site's own, and nothing is linked to it.
#pragma once

#include <array>

namespace dlrun {

// Of 1.10, 1.12 and 1.14; Debian's serial one has a name of its own.
inline constexpr std::array kHdf5Names{
    "libhdf5_serial.so.103", "libhdf5.so.103",    "libhdf5.so.200", "libhdf5_serial.so.310",
    "libhdf5.so.310",        "libhdf5_serial.so", "libhdf5.so"};

}  // namespace dlrun
