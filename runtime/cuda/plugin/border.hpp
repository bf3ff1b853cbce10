// The border of the plug-in: every Failure ends at it and becomes a code and a text. Included by the files
// that define calls of the table.
#pragma once

#include <exception>
#include <string>

namespace dlrun::cuda {

inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

template <class Body>
int guarded(const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    last_error() = failure.what();
    return 1;
  }
}

}  // namespace dlrun::cuda
