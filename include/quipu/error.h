// The one exception type that Quipu throws on purpose. Standard library exceptions do not leave the public
// API.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace quipu {

/// What kind of thing went wrong; the message says what and where.
enum class ErrorCode {
  invalid_argument,  ///< a value that the caller passed
  bad_file,          ///< contents of a file that break its format or contradict themselves
  unsupported,       ///< well formed, but asks for something that Quipu does not do
  io,                ///< the operating system refused a file operation
  out_of_memory,     ///< an allocation failed; nothing was changed
  internal,          ///< a broken invariant: a fault of Quipu's own
};

/// Name of a code as it is spelt above.
const char* to_string(ErrorCode code) noexcept;

/// Thrown for everything that a caller can be told about.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) noexcept : code_(code), message_(std::move(message)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

}  // namespace quipu
