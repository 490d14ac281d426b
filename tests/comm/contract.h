// SPDX-License-Identifier: Apache-2.0
// The contract of comm/communicator.h as laws that every transport must keep. A law is run by all ranks of a
// group at once and leaves nothing behind, so that the next can follow on the same group.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "comm/collective_laws.h"
#include "comm/group_laws.h"
#include "comm/message_laws.h"
#include "comm/misuse_laws.h"

namespace penstock::comm {

struct Law {
  std::string name;
  void (*holds)(Communicator&);
};

inline std::ostream& operator<<(std::ostream& out, const Law& law) { return out << law.name; }

inline std::vector<Law> contract() {
  return {
      {"MessagesOfAChannelArriveInOrder", messages_of_a_channel_arrive_in_order},
      {"ChannelsMayBeReceivedInAnotherOrderThanSent", channels_may_be_received_in_another_order_than_sent},
      {"ManyMessagesMayBeInFlight", many_messages_may_be_in_flight},
      {"MessagesOfEverySizeArriveWhole", messages_of_every_size_arrive_whole},
      {"AHundredMegabytesArriveWhole", a_hundred_megabytes_arrive_whole},
      {"RanksMayWriteToThemselves", ranks_may_write_to_themselves},
      {"TestingAloneFinishesAMessage", testing_alone_finishes_a_message},
      {"NoRankLeavesABarrierBeforeAllCame", no_rank_leaves_a_barrier_before_all_came},
      {"BroadcastReachesAllFromEveryRoot", broadcast_reaches_all_from_every_root},
      {"FloatSumsHaveTheBitsOfABinaryTree", float_sums_have_the_bits_of_a_binary_tree<float>},
      {"DoubleSumsHaveTheBitsOfABinaryTree", float_sums_have_the_bits_of_a_binary_tree<double>},
      {"IntegerSumsAreExact", integer_sums_are_exact},
      {"TheMaximumIsTheLargest", the_maximum_is_the_largest},
      {"ANotANumberIsTheMaximum", a_not_a_number_is_the_maximum},
      {"AllGatherKeepsRankOrder", all_gather_keeps_rank_order},
      {"ReduceScatterGivesEachItsBlockOfTheSum", reduce_scatter_gives_each_its_block_of_the_sum},
      {"AllToAllTransposesTheBlocks", all_to_all_transposes_the_blocks},
      {"CollectivesLeaveMessagesUnderWayAlone", collectives_leave_messages_under_way_alone},
      {"SplitSortsByKeyThenRank", split_sorts_by_key_then_rank},
      {"GroupsOfGroupsWork", groups_of_groups_work},
      {"MessagesStayInTheirGroup", messages_stay_in_their_group},
      {"GroupsWorkAtTheSameTime", groups_work_at_the_same_time},
      {"AShorterMessageIsRefused", a_message_of_another_length_is_refused<1000, 999>},
      {"ALongerMessageIsRefused", a_message_of_another_length_is_refused<1000, 1001>},
      {"AnEmptyMessageForSomeBytesIsRefused", a_message_of_another_length_is_refused<8, 0>},
      {"AStuckPeerIsNamedWithItsChannel", a_stuck_peer_is_named_with_its_channel},
      {"AStuckPeerIsNamedByItsRankInTheWorld", a_stuck_peer_is_named_by_its_rank_in_the_world},
      {"AReceiveThatGaveUpTakesNothing", a_receive_that_gave_up_takes_nothing},
      {"RanksAndChannelsThatAreNoneAreRefused", ranks_and_channels_that_are_none_are_refused},
  };
}

}  // namespace penstock::comm
