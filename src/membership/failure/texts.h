// Makes the texts for people about a group's calls, and about the failure that ended it. No code
// depends on these texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hocket/error.h"
#include "membership/control/group.h"
#include "membership/failure/records.h"
#include "membership/failure/witness.h"

namespace hocket::failure {

// Describes a call, such as "all_reduce #17 sum float32[1024]". A number of 0 is left out.
std::string describe(std::uint64_t sequence, const engine::Signature& signature);

// Names a rank for people: "rank 4 (pid 4711) on node3 (10.0.0.3:29501)". The pid is left out if it
// is unknown, which is possible for ranks of other hosts. The machine is left out if it is this
// one. `rank` is the number of the rank in the group that the text is about, and `place` its place
// on this host.
std::string name_of(const control::HostControl& host, int rank, int place);

// The texts about one group. A view: the group and the witness must outlive it. Any thread.
class Texts {
 public:
  Texts(std::string communicator, const control::GroupControl& group, Witness& witness)
      : communicator_(std::move(communicator)), group_(group), witness_(witness) {}

  // Return the last known call of each member, and of one.
  std::vector<RankCall> last_calls() const;
  RankCall last_call(int member) const;
  // Returns the last calls of this rank, oldest first. Records of older calls are overwritten.
  std::vector<RankCall> recent_calls() const;

  // Throws the exception that users get for a failure.
  [[noreturn]] void raise(const control::Failure& failure) const;
  // Throws the InvalidArgument that users get for another rank's refusal of a call.
  [[noreturn]] void raise(const Refusal& refusal) const;

 private:
  Status base_status(const control::Failure& failure) const;
  std::string place_of(const control::Failure& failure) const;
  std::string sentence(const control::Failure& failure) const;
  std::string sentence_of_loss(const control::Failure& failure, const std::string& where) const;
  std::string sentence_of_difference(const control::Failure& failure,
                                     const std::string& where) const;
  std::string sentence_of_deadlock(const control::Failure& failure) const;
  [[noreturn]] void raise_lateness(const control::Failure& failure) const;
  int pid_of(int member) const;
  std::string name_of(int member) const;
  bool is_remote(int member) const;
  bool is_way_from_here(const control::Failure& failure) const;
  int peer_of(const control::Failure& failure) const;
  std::string standstill_of(int member) const;
  std::optional<int> end_of(const control::Failure& failure) const;
  std::optional<control::EndReason> reason_of(const control::Failure& failure) const;
  std::string trouble_of(int member) const;
  std::optional<int> exit_of(const control::Failure& failure) const;
  bool lives_on(const control::Failure& failure) const;

  const std::string communicator_;
  const control::GroupControl& group_;
  Witness& witness_;
};

}  // namespace hocket::failure
