#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "foundation/os/fd.h"
#include "foundation/os/memfd.h"
#include "foundation/os/segment.h"
#include "hocket/error.h"
#include "hocket/store.h"
#include "membership/rendezvous/wire/handshake.h"

namespace hocket {
namespace {

constexpr std::size_t kDigits = 2 * Key::kBytes;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

int digit_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

bool is_digit(char digit) noexcept { return digit_value(digit) >= 0; }

// Reads at most `size` bytes from the start of the file. Returns how many it has read.
std::size_t read_start(int fd, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, static_cast<char*>(to) + done, size - done, static_cast<off_t>(done));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw SystemError("cannot read the job's key", errno);
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_all(int fd, const void* from, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t put = ::write(fd, static_cast<const char*>(from) + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw SystemError("cannot write the job's key", errno);
    done += static_cast<std::size_t>(put);
  }
}

void check_private(const os::Fd& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) throw SystemError("cannot look at " + path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw RendezvousError(fmt::format("the key file {} is not a regular file", path));
  }
  if (status.st_uid != ::geteuid()) {
    throw RendezvousError(
        fmt::format("the key file {} belongs to user {}, this process runs as user {}; use a key "
                    "file of your own (hocket key FILE makes one)",
                    path,
                    status.st_uid,
                    ::geteuid()));
  }
  if ((status.st_mode & 077) != 0) {
    throw RendezvousError(
        fmt::format("the key file {} can be used by others (mode {:04o}); if it has been so for "
                    "long, make a new one (hocket key FILE), else: chmod 600 {}",
                    path,
                    status.st_mode & 07777,
                    path));
  }
}

}  // namespace

Bytes to_bytes(std::string_view text) {
  const auto bytes = as_bytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

std::string to_string(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The memory of a key: a page that is not in core dumps, and that is cleared at the end. A resource
// that cannot be moved.
class Key::Secret {
 public:
  Secret() {
    void* page =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw SystemError("cannot map a page for a key", errno);
    ::madvise(page, os::page_bytes(), MADV_DONTDUMP);
    page_ = static_cast<std::byte*>(page);
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() {
    OPENSSL_cleanse(page_, kBytes);
    ::munmap(page_, kBytes);
  }
  std::span<std::byte, kBytes> bytes() const noexcept {
    return std::span<std::byte, kBytes>(page_, kBytes);
  }

 private:
  std::byte* page_;
};

Key::Key(View bytes) {
  const auto secret = std::make_shared<Secret>();
  std::ranges::copy(bytes, secret->bytes().begin());
  secret_ = secret;
}

Key::View Key::bytes() const noexcept {
  static constexpr std::array<std::byte, kBytes> kZeros{};
  return secret_ ? View(secret_->bytes()) : View(kZeros);
}

Key Key::generate() {
  const auto secret = std::make_shared<Secret>();
  rendezvous::fill_randomly(secret->bytes());
  return Key(secret);
}

Key Key::from_file(const std::string& path) {
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int why = errno;
  if (!file && path.size() == kDigits && std::all_of(path.begin(), path.end(), is_digit)) {
    // The message must not contain the text, because it may be a secret, and messages end up in
    // logs.
    throw RendezvousError(
        "a key itself was given where the path of a key file belongs; write it into a file of your "
        "own (chmod 600), or make another by hocket key FILE");
  }
  if (!file) {
    throw RendezvousError(fmt::format(
        "cannot open the key file {}: {}; hocket key FILE makes one", path, std::strerror(why)));
  }
  check_private(file, path);
  char text[kDigits + 2];
  const std::size_t size = read_start(file.get(), text, sizeof text);
  const bool is_whole = size == kDigits || (size == kDigits + 1 && text[kDigits] == '\n');
  const auto secret = std::make_shared<Secret>();
  bool are_digits = is_whole;
  for (std::size_t i = 0; is_whole && i < kBytes; ++i) {
    const int high = digit_value(text[2 * i]);
    const int low = digit_value(text[2 * i + 1]);
    are_digits = are_digits && high >= 0 && low >= 0;
    secret->bytes()[i] = static_cast<std::byte>((high & 15) << 4 | (low & 15));
  }
  OPENSSL_cleanse(text, sizeof text);
  if (!are_digits) {
    throw RendezvousError(fmt::format(
        "the key file {} does not hold {} hexadecimal digits; hocket key FILE makes a good one",
        path,
        kDigits));
  }
  return Key(secret);
}

void Key::write_file(const std::string& path) const {
  const os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) throw SystemError("cannot make the key file " + path, errno);
  std::string text;
  text.reserve(kDigits + 1);  // so that no copies of the digits remain in memory
  for (const std::byte each : bytes()) text += fmt::format("{:02x}", std::to_integer<int>(each));
  text += '\n';
  try {
    write_all(file.get(), text.data(), text.size());
  } catch (const SystemError&) {
    ::unlink(path.c_str());  // leave no part of a key behind
    OPENSSL_cleanse(text.data(), text.size());
    throw;
  }
  OPENSSL_cleanse(text.data(), text.size());
}

Key Key::from_fd(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    throw RendezvousError(fmt::format(
        "descriptor {} holds no job key: it is not a sealed memfd. Was it closed on the "
        "way here (subprocess needs pass_fds or close_fds=False)? HOCKET_KEY_FILE is "
        "the other way to hand a key over",
        fd));
  }
  const auto secret = std::make_shared<Secret>();
  std::byte extra{};
  const bool is_whole = read_start(fd, secret->bytes().data(), kBytes) == kBytes &&
                        ::pread(fd, &extra, 1, kBytes) == 0;
  if (!is_whole) {
    throw RendezvousError(
        fmt::format("descriptor {} holds no job key: it has not just {} bytes", fd, kBytes));
  }
  return Key(secret);
}

int Key::to_fd() const {
  os::Fd file = os::make_memfd("hocket-key");
  if (!file) throw SystemError("cannot make a memfd for the job's key", errno);
  write_all(file.get(), bytes().data(), kBytes);
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    throw SystemError("cannot seal the memfd of the job's key", errno);
  }
  return file.release();
}

bool operator==(const Key& a, const Key& b) noexcept {
  return CRYPTO_memcmp(a.bytes().data(), b.bytes().data(), Key::kBytes) == 0;
}

}  // namespace hocket
