// A terminal that is redrawn in place. Its keys are read one by one.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/fd.h"

namespace hocket::cli {

enum class Key : std::uint8_t { kUp, kDown, kEnter, kBack, kQuit, kResize, kLetter };

// A key that was pressed. A value. `letter` is set for kLetter.
struct Pressed {
  Key key = Key::kLetter;
  char letter = '\0';
};

// A resource: standard input and output, restored at the end. One instance; one thread. During its
// life, signals that end a program are returned as kQuit.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int columns() const noexcept { return columns_; }
  int lines() const noexcept { return lines_; }
  void draw(const std::vector<std::string>& lines) const;
  // Returns the next key; absent if no key is pressed within `patience`.
  std::optional<Pressed> wait(std::chrono::milliseconds patience);

 private:
  void measure();
  // Takes the first key that was pressed and has not been returned yet.
  Pressed take_key();

  termios before_{};
  Fd signals_;
  std::string keys_;  // bytes read, but not taken yet
  int columns_ = 80;
  int lines_ = 24;
};

// Returns the width of standard output; 80 if it is no terminal.
int columns_of_output();

}  // namespace hocket::cli
