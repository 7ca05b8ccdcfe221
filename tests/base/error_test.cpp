// Errors carry their code and a formatted message; a broken invariant throws instead of ending the process.
#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace quipu {
namespace {

using ::testing::HasSubstr;

Error caught(void (*action)()) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

TEST(Error, CarriesItsCodeAndItsFormattedMessage) {
  const Error error = caught([] { fail(ErrorCode::bad_file, "{}: {} tensors", "model.gguf", 3); });
  EXPECT_EQ(error.code(), ErrorCode::bad_file);
  EXPECT_STREQ(error.what(), "model.gguf: 3 tensors");
}

TEST(Error, CodesPrintAsTheyAreSpelt) {
  EXPECT_STREQ(to_string(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_STREQ(to_string(ErrorCode::out_of_memory), "out_of_memory");
}

TEST(Check, ThrowsAnInternalErrorThatNamesTheConditionAndThePlace) {
  const Error error = caught([] { QUIPU_CHECK(1 + 1 == 3); });
  EXPECT_EQ(error.code(), ErrorCode::internal);
  EXPECT_THAT(error.message(), HasSubstr("1 + 1 == 3"));
  EXPECT_THAT(error.message(), HasSubstr("error_test.cpp"));
}

TEST(Check, LetsATrueConditionPass) {
  EXPECT_NO_THROW(QUIPU_CHECK(1 + 1 == 2));
}

}  // namespace
}  // namespace quipu
