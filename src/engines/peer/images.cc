#include "engines/peer/images.h"

#ifdef HOCKET_PEER_IMAGES
// The assembler embeds the files unchanged, with the alignment that the driver expects.
asm(R"(
  .section .rodata
  .balign 64
hocket_peer_move:
  .incbin ")" HOCKET_PEER_IMAGES R"(/move.fatbin"
hocket_peer_move_end:
  .balign 64
hocket_peer_fold2:
  .incbin ")" HOCKET_PEER_IMAGES R"(/fold2.fatbin"
hocket_peer_fold2_end:
  .balign 64
hocket_peer_fold4:
  .incbin ")" HOCKET_PEER_IMAGES R"(/fold4.fatbin"
hocket_peer_fold4_end:
  .balign 64
hocket_peer_fold8:
  .incbin ")" HOCKET_PEER_IMAGES R"(/fold8.fatbin"
hocket_peer_fold8_end:
  .previous
)");

extern "C" {
extern const std::byte hocket_peer_move[], hocket_peer_move_end[];
extern const std::byte hocket_peer_fold2[], hocket_peer_fold2_end[];
extern const std::byte hocket_peer_fold4[], hocket_peer_fold4_end[];
extern const std::byte hocket_peer_fold8[], hocket_peer_fold8_end[];
}
#endif

namespace hocket::engines::peer {

Images images() noexcept {
#ifdef HOCKET_PEER_IMAGES
  return {.move = {hocket_peer_move, hocket_peer_move_end},
          .fold = {{hocket_peer_fold2, hocket_peer_fold2_end},
                   {hocket_peer_fold4, hocket_peer_fold4_end},
                   {hocket_peer_fold8, hocket_peer_fold8_end}}};
#else
  return {};
#endif
}

}  // namespace hocket::engines::peer
