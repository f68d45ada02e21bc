// A terminal that is drawn anew in place, and whose keys come one by one.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/fd.h"

namespace hocket::cli {

enum class Key : std::uint8_t { kUp, kDown, kEnter, kBack, kQuit, kResize, kLetter };

// A value. `letter`: of kLetter.
struct Pressed {
  Key key = Key::kLetter;
  char letter = '\0';
};

// A resource: standard input and output, which it gives back as they were. One; one thread. While it
// lives, signals that end a program come as kQuit.
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
  // The first of the keys that have come.
  Pressed take_key();

  termios before_{};
  Fd signals_;
  std::string keys_;  // come, and not taken so far
  int columns_ = 80;
  int lines_ = 24;
};

// Of standard output; 80 where it is no terminal.
int columns_of_output();

}  // namespace hocket::cli
