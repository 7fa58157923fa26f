//! A link delivers everything once and in order despite an unreliable network, and reports when its
//! peer is dead.

use kyocho_dsm::{Frame, Link, LinkSettings, Lost};
use proptest::prelude::*;

const SETTINGS: LinkSettings = LinkSettings { window: 4, resend_after: 5, deadline: 1000 };

/// What the network does with a frame.
#[derive(Debug, Clone, Copy)]
enum Delivery {
    Lost,
    /// Delivered after so many ticks, and once more after the others.
    Delivered(u64, Option<u64>),
}

fn fate() -> impl Strategy<Value = Delivery> {
    let again = proptest::option::of(0..30_u64);
    prop_oneof![
        Just(Delivery::Lost),
        (0..20_u64, again).prop_map(|(after, again)| Delivery::Delivered(after, again))
    ]
}

/// Frames in transit, with the tick of their arrival.
#[derive(Default)]
struct Network {
    flying: Vec<(u64, Frame<u32>)>,
}

impl Network {
    fn put(&mut self, now: u64, frame: &Frame<u32>, fate: Delivery) {
        if let Delivery::Delivered(after, again) = fate {
            let delays = [Some(after), again];
            self.flying
                .extend(delays.into_iter().flatten().map(|delay| (now + delay, frame.clone())));
        }
    }

    fn take(&mut self, now: u64) -> Vec<Frame<u32>> {
        let due = self.flying.extract_if(.., |(due, _)| *due <= now);
        due.map(|(_, frame)| frame).collect()
    }
}

proptest! {
    #[test]
    fn what_is_sent_arrives_once_and_in_order(
        count in 0..40_u32,
        fates in proptest::collection::vec(fate(), 1..200),
    ) {
        let (mut here, mut there) = (Link::new(SETTINGS, 0), Link::new(SETTINGS, 0));
        (0..count).for_each(|payload| here.send(payload));
        // From here on the network is reliable.
        let mut fates = fates.into_iter().chain(core::iter::repeat(Delivery::Delivered(0, None)));
        let (mut forth, mut back) = (Network::default(), Network::default());
        let mut arrived = Vec::new();
        for now in 1..900 {
            for frame in here.poll(now).expect("both live") {
                if let Some((number, _)) = frame.payload {
                    let unconfirmed = number as usize - arrived.len().min(number as usize);
                    prop_assert!(unconfirmed < SETTINGS.window as usize, "more than the window");
                }
                forth.put(now, &frame, fates.next().expect("endless"));
            }
            for frame in there.poll(now).expect("both live") {
                back.put(now, &frame, fates.next().expect("endless"));
            }
            for frame in forth.take(now) {
                arrived.extend(there.receive(frame, now));
            }
            for frame in back.take(now) {
                prop_assert_eq!(here.receive(frame, now), Vec::<u32>::new());
            }
        }
        prop_assert_eq!(arrived, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn silence_is_death_and_signs_of_life_prevent_it() {
    let (mut here, mut there) = (Link::<u32>::new(SETTINGS, 0), Link::<u32>::new(SETTINGS, 0));
    for now in 1..5000 {
        for frame in here.poll(now).expect("the peer speaks") {
            there.receive(frame, now);
        }
        for frame in there.poll(now).expect("the peer speaks") {
            here.receive(frame, now);
        }
    }
    assert!(here.poll(4990 + SETTINGS.deadline).is_ok());
    assert_eq!(here.poll(5000 + SETTINGS.deadline), Err(Lost));
}

#[test]
fn numbers_out_of_the_window_are_passed_over() {
    let mut link = Link::new(SETTINGS, 0);
    let frame = |number| Frame { payload: Some((number, number as u32)), expects: 0 };
    assert_eq!(link.receive(frame(SETTINGS.window), 1), Vec::<u32>::new());
    assert_eq!(link.receive(frame(u64::MAX), 1), Vec::<u32>::new());
    assert_eq!(link.receive(frame(0), 1), vec![0]);
    // Confirming a frame that was never sent has no effect.
    link.send(7);
    link.receive(Frame { payload: None, expects: u64::MAX }, 1);
    let sent = link.poll(1).expect("the peer speaks");
    assert_eq!(sent[0].payload, Some((0, 7)));
}
