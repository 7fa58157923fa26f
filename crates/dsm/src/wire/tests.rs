use super::{InvalidMessage, decode, encode};
use crate::address::{Address, LockId, NodeId, PageId, ThreadId};
use crate::layout::Layout;
use crate::layout::Scheme;
use crate::lock::Mode;
use crate::message::{BarrierKind, Message, Move};
use crate::page::WORDS_A_PAGE;
use crate::region::mismatch::{RegionDifference, RegionFailure, RegionMismatch};
use crate::region::{PAGES_MAX, Placement, RegionPlan};
use crate::update::Update;
use proptest::prelude::*;

fn layout() -> Layout {
    Layout {
        nodes: 4,
        regions: vec![NodeId(0); 8].into(),
        words_a_page: WORDS_A_PAGE as u32,
        locks: 16,
        scheme: Scheme::LogAtManager,
    }
}

fn page() -> impl Strategy<Value = PageId> {
    (0..8_u64).prop_map(PageId)
}

fn count() -> core::ops::Range<u64> {
    0..1 << 62
}

fn updates() -> impl Strategy<Value = Vec<Update>> {
    let run = (page(), 0..1000_u32, any::<u32>(), 1..24_u32, any::<u32>());
    let run = run.prop_map(|(page, word, time, length, value)| {
        (0..length).map(move |place| Update {
            address: Address { page, word: word + place },
            time: u64::from(time),
            value: value.wrapping_mul(place),
        })
    });
    prop::collection::vec(run, 0..6).prop_map(|runs| runs.into_iter().flatten().collect())
}

/// Regions anywhere in the space, whose first pages are not in the layout.
fn plan() -> impl Strategy<Value = RegionPlan> {
    let placement = prop_oneof![
        (0..4_u16).prop_map(|node| Placement::On(NodeId(node))),
        Just(Placement::Blocks),
        Just(Placement::Cyclic),
    ];
    (0..PAGES_MAX, 1..=u64::MAX, placement).prop_map(|(first, pages, placement)| {
        let pages = pages.min(PAGES_MAX - first);
        RegionPlan { first: PageId(first), pages, placement }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let lock = (0..16_u32).prop_map(LockId);
    let node = (0..4_u16).prop_map(NodeId);
    let thread = any::<u16>().prop_map(ThreadId);
    let contents = prop_oneof![
        Just(vec![0; WORDS_A_PAGE]),
        prop::collection::vec(any::<u32>(), WORDS_A_PAGE..=WORDS_A_PAGE),
    ];
    let mode = prop_oneof![Just(Mode::Exclusive), Just(Mode::NonExclusive)];
    let written = prop::collection::vec((page(), prop::collection::vec(node.clone(), 1..4)), 0..5);
    let moves = prop::collection::vec(
        prop_oneof![
            (lock.clone(), node.clone()).prop_map(|(lock, to)| Move::Lock(lock, to)),
            (page(), node.clone()).prop_map(|(page, to)| Move::Page(page, to)),
        ],
        0..5,
    );
    prop_oneof![
        (lock.clone(), thread.clone(), mode.clone(), any::<bool>(), count()).prop_map(
            |(lock, thread, mode, immediately, seen)| Message::Acquire {
                lock,
                thread,
                mode,
                immediately,
                seen
            }
        ),
        (lock.clone(), thread.clone(), mode, count(), count(), updates()).prop_map(
            |(lock, thread, mode, stamp, time, updates)| Message::Grant {
                lock,
                thread,
                mode,
                stamp,
                time,
                updates
            }
        ),
        updates().prop_map(Message::Flush),
        (page(), contents).prop_map(|(page, words)| Message::Page(page, words.into())),
        (written, moves).prop_map(|(written, moves)| Message::Go {
            time: 3,
            written,
            held: vec![(LockId(3), NodeId(1))],
            moves,
            kind: BarrierKind::SingleReadWrite,
        }),
        node.clone().prop_map(Message::Lost),
        node.clone().prop_map(Message::Stranded),
        (plan(), any::<Option<u32>>())
            .prop_map(|(plan, number)| { Message::Region(plan, number.map(RegionFailure::Host)) }),
        (plan(), plan(), node.clone(), node).prop_map(|(plan, another, by, other)| {
            let difference = RegionDifference::Other(another);
            Message::Refuse(RegionMismatch { plan, by, other, difference })
        }),
        Just(Message::Left),
        (lock, thread).prop_map(|(lock, thread)| Message::Cancel(lock, thread)),
    ]
}

proptest! {
    #[test]
    fn messages_arrive_as_they_were_sent(epoch in count(), message in message()) {
        let bytes = encode(epoch, &message);
        prop_assert_eq!(decode(&bytes, &layout()), Ok((epoch, message)));
    }

    #[test]
    fn hostile_bytes_are_refused_or_decode_to_what_the_layout_has(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        if let Ok((epoch, message)) = decode(&bytes, &layout()) {
            // Numbers may be encoded in more bytes than necessary, so the decoded values are
            // compared.
            prop_assert_eq!(decode(&encode(epoch, &message), &layout()), Ok((epoch, message)));
        }
    }

    #[test]
    fn a_message_that_was_changed_or_cut_does_no_harm(
        message in message(),
        at in any::<prop::sample::Index>(),
        bits in 1..=255_u8,
    ) {
        let mut bytes = encode(1, &message);
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        let _either = decode(&bytes, &layout());
        prop_assert_eq!(decode(&bytes[..0], &layout()), Err(InvalidMessage::Malformed));
        bytes[at] ^= bits;
        prop_assert_eq!(decode(&bytes[..bytes.len() - 1], &layout()), Err(InvalidMessage::Malformed));
        bytes.push(0);
        prop_assert_eq!(decode(&bytes, &layout()), Err(InvalidMessage::Malformed));
    }
}

#[test]
fn what_the_layout_does_not_have_is_refused() {
    let plan = RegionPlan { first: PageId(1), pages: 1, placement: Placement::Cyclic };
    let nowhere = RegionPlan { placement: Placement::On(NodeId(4)), ..plan };
    let (by, other, difference) = (NodeId(0), NodeId(1), RegionDifference::Nothing);
    let mismatch = RegionMismatch { plan, by, other, difference };
    for message in [
        Message::Fetch(PageId(8), 1),
        Message::Fetch(PageId(u64::MAX), 1),
        Message::Region(RegionPlan { pages: 0, ..plan }, None),
        Message::Region(RegionPlan { pages: PAGES_MAX, ..plan }, None),
        Message::Region(RegionPlan { pages: u64::MAX, ..plan }, None),
        Message::Region(nowhere, None),
        Message::Refuse(RegionMismatch { plan: nowhere, ..mismatch }),
        Message::Refuse(RegionMismatch {
            difference: RegionDifference::Other(nowhere),
            ..mismatch
        }),
        Message::Refuse(RegionMismatch { by: NodeId(4), ..mismatch }),
        Message::Refuse(RegionMismatch { other: NodeId(4), ..mismatch }),
        Message::Cancel(LockId(16), ThreadId::FIRST),
        Message::Lost(NodeId(4)),
        Message::Stranded(NodeId(4)),
        Message::Flush(vec![Update {
            address: Address { page: PageId(0), word: 1024 },
            time: 0,
            value: 0,
        }]),
        Message::HandOn {
            lock: LockId(0),
            to: NodeId(9),
            thread: ThreadId::FIRST,
            mode: Mode::Exclusive,
            time: 0,
        },
        Message::HandOn {
            lock: LockId(0),
            to: NodeId(1),
            thread: ThreadId::FIRST,
            mode: Mode::Exclusive,
            time: 1 << 62,
        },
    ] {
        assert_eq!(
            decode(&encode(0, &message), &layout()),
            Err(InvalidMessage::OutOfRange),
            "{message:?}"
        );
    }
}

#[test]
fn neighbouring_words_travel_together_and_empty_pages_for_nothing() {
    let update = |word| Update { address: Address { page: PageId(1), word }, time: 9, value: 7 };
    let message = Message::Flush((0..1000).map(update).collect());
    assert!(encode(0, &message).len() < 1000 * 4 + 16);
    let page = Message::Page(PageId(0), vec![0; WORDS_A_PAGE].into());
    assert!(encode(0, &page).len() < 8);
}

#[test]
fn a_page_takes_as_many_bytes_as_its_number_needs() {
    // The sender's epoch, which message, the page, and 0.
    for (page, bytes) in [(127, 1), (128, 2), (1 << 33, 5), ((1 << 52) - 1, 8)] {
        assert_eq!(encode(0, &Message::Fetch(PageId(page), 0)).len(), 3 + bytes, "{page}");
    }
}
