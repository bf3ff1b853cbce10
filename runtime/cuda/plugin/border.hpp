// The border of the plug-in: every Failure ends at it and becomes a code and a text. Included by the files
// that define calls of the table.
#pragma once

#include <cstring>
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

// What the last call on this thread that failed said.
inline void error_text(char* text, std::size_t capacity) {
  std::strncpy(text, last_error().c_str(), capacity - 1);
  text[capacity - 1] = 0;
}

}  // namespace dlrun::cuda
