// Standard output and standard error. Output goes out at once and unbuffered, so that text streams, and no
// failure to write it goes unnoticed.
#pragma once

#include <string_view>

namespace quipu::cli {

/// Thrown when the reader of standard output has closed it: nobody is there to read on.
struct OutputClosed {};

/// Writes all of `text` to standard output. Throws OutputClosed, or Error(io).
void write_output(std::string_view text);
/// Writes to standard error, as far as that is possible.
void write_diagnostic(std::string_view text) noexcept;

bool output_is_terminal() noexcept;
bool diagnostics_are_on_terminal() noexcept;

/// Standard streams that the caller left closed are opened on /dev/null (output so that writing fails), lest
/// a file that is opened later takes their place. A closed pipe becomes an error of write_output instead of a
/// signal.
void prepare_standard_streams();

}  // namespace quipu::cli
