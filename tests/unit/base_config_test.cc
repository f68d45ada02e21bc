// Settings, read from the environment: bad values are errors that name the variable and the value.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::base {
namespace {

// A variable of the environment, for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

struct BadValue {
  const char* name;
  const char* value;
  const char* expected;  // what the error says of valid values
};

TEST(Config, RefusesBadValues) {
  const std::vector<BadValue> all = {
      {"HOCKET_LOG", "loud", "debug, info, warning, error, off"},
      {"HOCKET_DEADLINE", "never", "forever"},
      {"HOCKET_WARN", "-1", "0.001"},
      {"HOCKET_DEADLOCK_AFTER", "soon", "0.001"},
      {"HOCKET_SEGMENT_GIB", "0", "a whole number from 1"},
      {"HOCKET_PORTS", "7", "29500-29600"},
      {"HOCKET_SILENCE", "0", "from 0.1 to 3600"},
      {"HOCKET_SINGLE_COPY", "1", "auto, never, always"},
      {"HOCKET_TOP", "no", "one of 0, 1"},
      {"HOCKET_TOP", "00", "one of 0, 1"},
      {"HOCKET_FFT_LIBRARY", "none", "fftw, mkl, eigen nor a library's file"},
      {"HOCKET_FFT_LIBRARY", "FFTW", "fftw, mkl, eigen nor a library's file"},
      {"HOCKET_BLAS_LIBRARY", "abacus", "openblas, mkl, blis, none nor a library's file"},
  };
  for (const BadValue& bad : all) {
    const Variable variable(bad.name, bad.value);
    const std::string given = std::string(bad.name) + "=" + bad.value;
    try {
      static_cast<void>(Config::from_environment());
      ADD_FAILURE() << given << " is taken";
    } catch (const InvalidArgument& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(given), text.npos) << text;
      EXPECT_NE(text.find(bad.expected), text.npos) << text;
    }
  }
}

// As in a program that has called setlocale.
TEST(Config, ReadsNumbersAlikeInAnyLocale) {
  char folder[] = "/tmp/hocket-locale-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Variable path("LOCPATH", folder);
  const std::string make = "localedef -c -i de_DE -f UTF-8 " + std::string(folder) + "/de_DE.utf8";
  static_cast<void>(std::system((make + " >/dev/null 2>&1").c_str()));
  const bool has_comma = std::setlocale(LC_NUMERIC, "de_DE.utf8") != nullptr;
  std::filesystem::remove_all(folder);
  if (!has_comma) GTEST_SKIP() << "needs localedef and the sources of de_DE";
  ASSERT_EQ(std::localeconv()->decimal_point, std::string(","));
  const Variable silence("HOCKET_SILENCE", "0.5");
  EXPECT_EQ(Config::from_environment().silence, std::chrono::milliseconds(500));
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Config, ReadsWhetherARankIsShown) {
  EXPECT_TRUE(Config::from_environment().is_shown);
  for (const char* value : {"", "1", "0"}) {
    const Variable variable("HOCKET_TOP", value);
    EXPECT_EQ(Config::from_environment().is_shown, std::string(value) != "0") << value;
  }
}

TEST(Config, ReadsWhichLibraryIsChosen) {
  EXPECT_EQ(fft_library().text(), "");
  for (const char* word : {"fftw", "mkl", "eigen"}) {
    const Variable variable("HOCKET_FFT_LIBRARY", word);
    EXPECT_EQ(fft_library().word, word);
    EXPECT_EQ(fft_library().file, "");
  }
  for (const char* word : {"openblas", "mkl", "blis", "none"}) {
    const Variable variable("HOCKET_BLAS_LIBRARY", word);
    EXPECT_EQ(blas_library().word, word);
  }
  for (const char* file : {"/opt/lib/blas", "libopenblas.so.0", "./mine"}) {
    const Variable variable("HOCKET_BLAS_LIBRARY", file);
    EXPECT_EQ(blas_library().word, "");
    EXPECT_EQ(blas_library().file, file);
  }
}

}  // namespace
}  // namespace hocket::base
