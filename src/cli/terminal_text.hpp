// Text from elsewhere in lines for people: nothing in it may move the cursor, change the terminal or pretend
// to be a line of its own.
#pragma once

#include <string>
#include <string_view>

namespace dlrun::cli {

enum class Newlines { shown, kept };
// Without colours; other control characters, and bytes that are no UTF-8, as text: "\x1b[2J", "\n". Tabs
// stay.
std::string plain_text(std::string_view text, Newlines newlines = Newlines::shown);

// Ends the colours that a line leaves on, or they would last over the lines of others.
std::string with_colors_ended(std::string_view line);

// The beginning of plain UTF-8 text that fits into so many columns.
std::string fitted(std::string_view text, int columns);
int columns_of(std::string_view text);

}  // namespace dlrun::cli
