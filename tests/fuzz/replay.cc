// Runs a fuzz target without libFuzzer, so with any compiler. It runs every input of the given
// folders: as kept, cut short at each length, and with each byte changed. Status 0: all inputs
// passed; 2: there was nothing to run.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A copy of just that size each time, so that the address sanitizer sees what is read beyond it.
void run(Input input) {
  input.shrink_to_fit();
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

// Returns how many inputs were run.
std::size_t run_with_neighbours(const Input& input) {
  run(input);
  for (std::size_t size = 0; size < input.size(); ++size) {
    run(Input(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)));
    for (const int change : {0x01, 0x80, 0xff}) {
      Input changed = input;
      changed[size] = static_cast<std::uint8_t>(changed[size] ^ change);
      run(std::move(changed));
    }
  }
  return 1 + 4 * input.size();
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t files = 0;
  std::size_t runs = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      try {
        runs += run_with_neighbours(read(entry.path()));
      } catch (const std::exception& error) {  // a target catches what it expects
        std::fprintf(stderr, "replay: %s: %s\n", entry.path().c_str(), error.what());
        return 1;
      }
      ++files;
    }
  }
  std::printf("replay: %zu inputs, %zu with their neighbours\n", files, runs);
  return files == 0 ? 2 : 0;
}
