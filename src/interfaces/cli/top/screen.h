// A terminal that is redrawn in place, and whose keys are read one by one.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/fd.h"

namespace hocket::cli {

enum class Key : std::uint8_t { kUp, kDown, kEnter, kBack, kQuit, kResize, kLetter };

// A value. `letter` is set for kLetter.
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
  // The next key; absent after `patience` without one.
  std::optional<Pressed> wait(std::chrono::milliseconds patience);

 private:
  void measure();
  // Takes the first of the keys that have been pressed.
  Pressed take_key();

  termios before_{};
  Fd signals_;
  std::string keys_;  // come, and not taken so far
  int columns_ = 80;
  int lines_ = 24;
};

// The width of standard output; 80 if it is no terminal.
int columns_of_output();

}  // namespace hocket::cli
